"""The words of a rollout's traces: what was said in each, and up to which reply of it. Pure."""

from __future__ import annotations

from typing import Dict, List, Tuple

from ...trajectory import Message, Trace, Trajectory, Turn


def said_in(trajectory: Trajectory, trace: Trace) -> List[Message]:
    """What was said in a trace; of an agent that does not tell, in all of the rollout. Without the notes."""
    return [message for message in trace.messages or trajectory.messages if message.role != "note"]


def replies_in(trajectory: Trajectory, trace: Trace) -> List[Tuple[Turn, int]]:
    """The trace's own turns of the assistant, each with its place in said_in; [] where that cannot be told.

    What a trace has in common with an earlier one is prompt in it: its own replies are the last ones. Where a rollout
    does not tell what was said in which trace, it said the replies of all of them in a row.
    """
    turns = [turn for turn in trace.turns if turn.role == "assistant"]
    places = [place for place, message in enumerate(said_in(trajectory, trace)) if message.sampled]
    if not trace.messages:
        counts = [sum(turn.role == "assistant" for turn in one.turns) for one in trajectory.traces]
        if sum(counts) != len(places):
            return []
        places = places[:sum(counts[:next(k for k, one in enumerate(trajectory.traces) if one is trace) + 1])]
    return list(zip(turns, places[len(places) - len(turns):])) if len(turns) <= len(places) else []


def texts(trajectory: Trajectory, trace: Trace) -> Dict[int, str]:
    """By the offsets of the trace's own turns of the assistant: what the policy said there."""
    said = said_in(trajectory, trace)
    return {turn.offset: said[place].content for turn, place in replies_in(trajectory, trace)}


def as_chat(messages: List[Message]) -> List[Dict[str, str]]:
    """As chat templates want them."""
    return [{"role": message.role, "content": message.content} for message in messages]


def conversations(trajectory: Trajectory, trace: Trace) -> Dict[int, List[Dict[str, str]]]:
    """By the offsets of the trace's own turns of the assistant: the conversation up to that reply, which is its last message."""
    said = said_in(trajectory, trace)
    return {turn.offset: as_chat(said[:place + 1]) for turn, place in replies_in(trajectory, trace)}
