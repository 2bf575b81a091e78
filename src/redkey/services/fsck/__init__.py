"""fsck: does a data directory hold what it claims, and what others hold proof of?"""
