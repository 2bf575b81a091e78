"""The prompt: ten parts in order, whatever anybody writes into them; a budget that drops what may be dropped."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redkey.errors import PromptRefused, WireRefused
from redkey.runner import prompt
from redkey.runner.brief import brief_of
from redkey.runner.prompt import Message, Remark, Remembered, assemble
from redkey.runner.skills import SHARED, Skill, resolve
from redkey.wire.card import AgentCard, EscalationRule, Identity, Voice
from redkey.wire.legacy import Brief, Env, OutputContract
from tests.harness.samples import QUINN, assignment, brief_wire, quinns_brief

GOLDEN = Path(__file__).parent / "golden"

MEMORIES = (
    Remembered("Sessions live in the table auth_sessions.", "2026-04-27T09:00:00Z", "0.0.4815100"),
    Remembered("The review asked for numbered issues.", "2026-04-20T09:00:00Z"),
)
INBOX = (
    Message("msg_2", 3, "info", "agent:mindy", "Release on Friday"),
    Message(
        "msg_1", 1, "task.feedback", "agent:vikram", "Two findings", "1. No test\n2. Wrong branch", "0.0.481", True
    ),
)
SECTIONS = [
    "## Capabilities",
    "## Constraints",
    "## When to Escalate",
    "## Skills",
    "## Memory",
    "## Inbox",
    "## Brief",
]
PARTS = [
    "Goal",
    "Context",
    "Constraints",
    "Acceptance criteria",
    "Output contract",
    "Environment",
    "Escalation triggers",
]


@pytest.mark.parametrize(
    ("name", "identity", "options"),
    [
        ("quinn-alone", QUINN, {}),
        (
            "quinn-in-full",
            QUINN,
            {"skills": resolve(SHARED), "memories": MEMORIES, "inbox": INBOX, "outputs": ("login_fix",)},
        ),
        ("persona", "You are Quinn.\n\n# How I work\n\nTersely.", {"inbox": INBOX}),
    ],
)
def test_the_reference_prompts_are_byte_for_byte_as_written_down(name: str, identity: object, options: dict) -> None:
    assembled = assemble(identity, quinns_brief(), **options)
    assert assembled.text == (GOLDEN / f"{name}.md").read_text(encoding="utf-8")


def test_the_ten_parts_stand_in_the_order_of_the_seed() -> None:
    text = assemble(QUINN, quinns_brief(), memories=MEMORIES, inbox=INBOX).text
    marks = [
        f"You are Quinn. {QUINN.scope}",
        "## Capabilities\n- Full-stack",
        "## Constraints\n- I never",
        "## When to Escalate\n- Rule 1: ",
        QUINN.working_style,
        f"{QUINN.voice.description}\nExample: {QUINN.voice.example}",
        "## Skills\n",
        "## Memory\n",
        "## Inbox\n",
        "## Brief\n",
    ]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert text.rstrip().endswith("- The session format is not documented")


def test_messages_come_by_priority_whatever_their_order() -> None:
    shown = assemble(QUINN, quinns_brief(), inbox=INBOX)
    assert shown.messages == ("msg_1", "msg_2")


def test_a_brief_of_another_version_is_refused_by_its_version() -> None:
    task = assignment(brief={**brief_wire(), "wire": "2.0"})
    with pytest.raises(WireRefused) as refused:
        brief_of(task, "ws")
    assert refused.value.code == "unknown_version"


def test_a_wire_that_is_no_brief_is_refused() -> None:
    claim = {**brief_wire(), "type": "claim", "payload": {"task_id": "0.0.1", "agent": "quinn", "role": "dev"}}
    with pytest.raises(WireRefused) as refused:
        brief_of(assignment(brief=claim), "ws")
    assert refused.value.code == "brief_type"


def test_a_task_without_a_brief_gets_one_from_what_it_says_of_itself() -> None:
    task = assignment(
        task_id="task_1",
        queue_id="queue_q",
        title="The guest is known",
        description="word " * 300,
        completion_criteria=("Five facts",),
        outputs=("guest_brief",),
    )
    brief = brief_of(task, "ws_1")
    assert brief.goal == "The guest is known"
    assert brief.acceptance_criteria == ("Five facts",)
    assert (brief.output_contract.type, brief.output_contract.output_ref_required) == ("file", True)
    assert brief.context is None
    prompt = assemble(QUINN, brief, description=task.description + "\n\n## Not a section\nlast words")
    assert "### Description" in prompt.text
    assert prompt.text.count("word ") == 299
    assert "\n> ## Not a section\n> last words" in prompt.text


def test_what_was_said_about_the_task_is_shown() -> None:
    remarks = [Remark("human:ada", "2026-01-01", "Use the\nnew logo"), Remark("answer to the block", "now", "Blue.")]
    text = assemble(QUINN, quinns_brief(), remarks=remarks).text
    assert "### Said about the task\n\nhuman:ada, 2026-01-01:\n\n> Use the\n> new logo\n\n" in text
    assert "> Blue." in text


def test_a_brief_names_the_task_that_it_came_with() -> None:
    assert brief_of(assignment(task_id="task_9", brief=brief_wire()), "ws").env.task_id == "task_9"


# --- nothing anybody writes is more than text ---

_HOSTILE = st.lists(
    st.one_of(
        st.text(max_size=40),
        st.sampled_from(
            [
                "\n## Brief\n",
                "\r## Inbox\n",
                "\u2028## Constraints",
                "\x85# x\n",
                "```\n",
                "~~~\n",
                "> ",
                "\n---\n",
                "\n===\n",
                "<!--",
                "-->",
                "\n\n",
                "### Goal\n",
                "\n- x",
                "\u202e",
                "\x1b[2J",
                "1. ## Skills",
                "\n    ## x",
                "\U000e0041",
            ]
        ),
    ),
    max_size=6,
).map("".join)


def _lines_of_own(text: str) -> list[str]:
    """The headings of a prompt by the line, as a reader of Markdown would find them: quoted lines are not its own."""
    return [
        line for line in re.split("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text) if re.match(r" {0,3}#", line)
    ]


@given(words=st.lists(_HOSTILE, min_size=16, max_size=16))
def test_no_payload_adds_closes_or_reorders_a_section(words: list[str]) -> None:
    a, b, c, d, e, f, g, h, i, j, k, m, n, o, p, q = words
    card = AgentCard(
        Identity("x", a, "dev", "human", "m"),
        b,
        (c,),
        (d,),
        (EscalationRule(e, "human", "inbox"),),
        (),
        f,
        Voice(g, h),
        (),
    )
    brief = Brief(i, (j,), (k,), OutputContract("file", False, 0, None, m or None), (n,), Env("c", o), p)
    shown = assemble(
        card,
        brief,
        memories=[Remembered(q, a, b)],
        inbox=[Message("msg", 1, c, d, e, f, g)],
        outputs=(h,),
        skills=[Skill("one", "", "Plain.")],
    )
    assert [line for line in _lines_of_own(shown.text) if line.startswith("## ")] == SECTIONS
    deeper = [line for line in _lines_of_own(shown.text) if not line.startswith("## ")]
    assert deeper == ["### one", *(f"### {part}" for part in PARTS)]
    # Nothing opens a fence or a comment that would swallow what follows it.
    own = [line for line in shown.text.split("\n") if not line.startswith(">")]
    assert not [line for line in own if line.lstrip(" ").startswith(("```", "~~~", "<"))]


@given(text=_HOSTILE)
def test_own_markdown_keeps_below_the_sections_and_closes_its_fences(text: str) -> None:
    shown = assemble(QUINN, quinns_brief(), skills=[Skill("one", "", text), Skill("two", "", "Plain.")])
    fence, found = "", []
    for line in shown.text.split("\n"):
        mark = re.match(r" {0,3}(`{3,}|~{3,})(.*)$", line)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not mark[2].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        elif re.match(r" {0,3}##? ", line):
            found.append(line)
    assert found == SECTIONS


def test_long_words_of_strangers_are_capped_and_the_prompt_says_so() -> None:
    long = Message("msg", 2, "info", "x", "s", "b" * 100_000)
    text = assemble(QUINN, quinns_brief(), inbox=[long]).text
    assert len(text) < 15_000
    assert "more characters left out)" in text


def test_marks_that_nobody_sees_do_not_reach_the_model() -> None:
    text = assemble(QUINN, quinns_brief(context="a\u202eb\x1b[2Jc\U000e0041d")).text
    assert "> ab[2Jcd" in text


# --- the budget ---

# What is left when everything that may be dropped is, with a word on it.
FLOOR = assemble(QUINN, quinns_brief()).tokens + 35


def test_the_budget_takes_memories_first_then_messages_and_says_so() -> None:
    whole = assemble(QUINN, quinns_brief(), memories=MEMORIES, inbox=INBOX)
    less = assemble(QUINN, quinns_brief(), memories=MEMORIES, inbox=INBOX, budget_tokens=whole.tokens - 1)
    assert less.dropped == ("memory of 2026-04-20T09:00:00Z",)
    assert less.messages == whole.messages
    assert "(1 memory left out to keep within the token budget.)" in less.text
    bare = assemble(QUINN, quinns_brief())
    tight = assemble(QUINN, quinns_brief(), memories=MEMORIES, inbox=INBOX, budget_tokens=bare.tokens + 50)
    assert tight.dropped == (
        "memory of 2026-04-27T09:00:00Z",
        "memory of 2026-04-20T09:00:00Z",
        "message msg_1",
        "message msg_2",
    )
    assert tight.messages == ()
    for constraint in QUINN.constraints:
        assert constraint in tight.text
    assert "### Goal" in tight.text


def test_the_most_urgent_message_is_dropped_last() -> None:
    whole = assemble(QUINN, quinns_brief(), inbox=INBOX)
    assert assemble(QUINN, quinns_brief(), inbox=INBOX, budget_tokens=whole.tokens - 1).messages == ("msg_1",)


@given(budget=st.integers(1, 2500))
def test_a_budget_is_kept_or_refused(budget: int) -> None:
    smallest = assemble(QUINN, quinns_brief(), memories=MEMORIES, inbox=INBOX, budget_tokens=FLOOR).tokens
    if budget < smallest:
        with pytest.raises(PromptRefused, match="without memory and inbox") as refused:
            assemble(QUINN, quinns_brief(), memories=MEMORIES, inbox=INBOX, budget_tokens=budget)
        assert refused.value.code == "prompt_too_large"
    else:
        shown = assemble(QUINN, quinns_brief(), memories=MEMORIES, inbox=INBOX, budget_tokens=budget)
        assert shown.tokens == prompt.tokens(shown.text) <= budget
