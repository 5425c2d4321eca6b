"""`otterwiki-semantic doctor`: checks that change nothing."""
