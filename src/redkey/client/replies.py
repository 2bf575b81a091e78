"""Replies: what several families of calls answer with. Their shapes are the server's own (`redkey.shapes`).

Fields that this SDK does not know are ignored, so that a newer server can be called; states are plain text for the same
reason.
"""

from redkey.shapes.fields import Item as Item
from redkey.shapes.fields import Page as Page
from redkey.shapes.fields import Reply as Reply
from redkey.shapes.fields import SecretReply as SecretReply
from redkey.shapes.problem import NextStep as NextStep
from redkey.shapes.problem import Problem as Refusal
from redkey.shapes.problem import Wrong as Remark

__all__ = ["Item", "NextStep", "Page", "Refusal", "Remark", "Reply", "SecretReply"]
