"""The gate: policies that review an action between the model's proposal and its execution."""

from agent_core.policies.base import Decision, Judgement, Policy, Situation, Verdict, review
from agent_core.policies.detect import REPLY_POLICIES, PolicyName, ReplyTask, policies_of, reply_task

__all__ = [
    "REPLY_POLICIES",
    "Decision",
    "Judgement",
    "Policy",
    "PolicyName",
    "ReplyTask",
    "Situation",
    "Verdict",
    "policies_of",
    "reply_task",
    "review",
]
