"""The health of the wiki: findings about its pages, made in the background, and which of them were dismissed."""
