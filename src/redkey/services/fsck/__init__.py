"""fsck: does a data directory hold what it says, and what others were told it holds?"""
