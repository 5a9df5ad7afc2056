"""Your own evaluators, agents, tools and hooks, as Python functions (docs/handlers.md).

    from sluice.handlers import agent, evaluator, tool

    @evaluator
    def same_words(answer, task):                        # parameters are given by name
        return float(answer.strip() == task["metadata"]["gold"])

    @tool
    def look_up(word: str) -> str:
        \"\"\"Looks a word up in the dictionary.\"\"\"
        return DICTIONARY.get(word, "not found")

    @agent
    async def two_turns(job):
        first = await job.sample()                  # the task's prompt
        return (await job.sample(f"Check this: {first.text}")).text

Save it as mine.py and start a worker with --handler mine='python3 -m sluice.handlers mine.py'. Functions may be plain or
async; many jobs run at once. An exception ends the job as the task's fault, with its traceback and without a reward.
"""

from .jobs import (AgentJob, BlockingAgentJob, BlockingEvaluatorJob, BlockingHookJob, BlockingToolJob, Cancelled, EvaluatorJob,
                   HookJob, Output, Over, Refused, Reply, ToolCall, ToolJob)
from .offers import agent, evaluator, hook, tool
from .results import Answer, Change, Part, Refuse, Score, Test

__all__ = ["agent", "evaluator", "tool", "hook", "Score", "Part", "Test", "Answer", "Change", "Refuse", "Reply", "ToolCall", "Output",
           "AgentJob", "EvaluatorJob", "ToolJob", "HookJob", "BlockingAgentJob", "BlockingEvaluatorJob", "BlockingToolJob",
           "BlockingHookJob", "Over", "Refused", "Cancelled"]
