"""The health report: findings about pages, computed in the background, and their dismissals."""
