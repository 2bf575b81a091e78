"""Advice on plans: the best-practice warnings, by rules with thresholds that docs/plans.md explains.

Warnings never keep a plan from running. The rules look at words, so they are coarse: each is meant to be right when it
warns, and may miss what a person would see.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from redkey.errors import Finding, pointer
from redkey.plans.graph import levels
from redkey.plans.outline import Outline, TaskOutline
from redkey.wire.names import role_id

# A task with more than this is too broad.
TITLE_WORDS = 16
TITLE_ACTS = 2
CRITERIA = 8
OUTPUTS = 5
# A task with more dependencies than this waits for too many others.
DEPENDENCIES = 8
# A criterion with fewer words than this says too little.
CRITERION_WORDS = 2
# A plan with at least this many tasks is too serial if fewer than this many tasks share a level on average.
SERIAL_TASKS = 5
TASKS_A_LEVEL = 1.5


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# These divide acts as "and" does: "Collect, rank & publish".
_DIVIDER = re.compile(r"[,;:/&+]")
_WORD = re.compile(r"[a-z][a-z'-]*")
# Ambiguous words. Most texts contain none of them, and are not searched for the phrases.
_VAGUE = re.compile(
    r"\b(?:good|nice|great|better|best|fine|okay|ok|proper|properly|appropriate|appropriately|adequate|adequately"
    r"|sufficient|sufficiently|reasonable|reasonably|suitable|suitably|satisfactory|satisfying|user-friendly|etc|tbd|todo"
    r"|whatever|somehow|high.quality|as (?:needed|required|appropriate|necessary)|if (?:possible|needed|necessary)"
    r"|and so on|should work|works? well|looks? right|nothing (?:is )?missing|everything (?:is )?(?:done|works))\b",
    re.IGNORECASE,
)
_VAGUE_WORDS = _words(
    """
    good nice great better best fine okay ok proper properly appropriate appropriately adequate adequately sufficient
    sufficiently reasonable reasonably suitable suitably satisfactory satisfying user-friendly etc tbd todo whatever
    somehow high high-quality needed required necessary possible so should well looks look nothing everything
    """
)
_BROAD = re.compile(
    r"\b(?:everything|entire|whole|end.to.end|all the (?:work|tasks|things)|(?:the|this) project$)\b", re.IGNORECASE
)
_BROAD_WORDS = _words("everything entire whole end end-to-end work tasks things project")
_NUMBER = re.compile(r"[0-9%]")
_VAGUE_ROLES = _words(
    """
    agent ai any anybody anyone assistant bot contributor default doer everybody everyone executor general
    generalist helper human llm main manager member misc model other others person people resource role
    somebody someone staff system team thing user worker
    """
)
_PRODUCE = _words(
    """
    assemble author build code compose create design develop draft edit generate implement make prepare produce
    record revise rewrite write
    """
)
_REVIEW = _words(
    """
    approve assess audit check critique evaluate fact-check grade inspect judge proofread qa review validate verify
    """
)
_OTHER_ACTS = _words(
    """
    analyse analyze announce archive calculate clean collect compare configure convert decide deliver deploy
    describe document email extract fetch find fix format gather import install integrate interview launch merge
    migrate monitor outline package pitch plan post publish rank refactor release report research schedule select
    send sort submit summarise summarize test tidy translate update upload
    """
)
_ACTS = _PRODUCE | _REVIEW | _OTHER_ACTS
# After one of these, or at the beginning, a word of the lists above is an act; elsewhere it may be a thing: in
# "Review podcast draft" only the review is an act.
_BEFORE_ACT = frozenset({"and", "then", "to", "also", "or", "finally"})


def advise(sketch: Outline) -> Iterator[Finding]:
    """List everything that could be better about a plan."""
    for task in sketch.tasks:
        asked = acts(task.title)
        yield from _breadth(task, asked)
        yield from _output(task)
        yield from _dependencies(task)
        yield from _criteria(task)
        yield from _review(sketch, task, set(asked))
        yield from _attempts(task)
    yield from _serial(sketch)
    yield from _role_names(sketch)


def acts(title: str) -> list[str]:
    """List the acts that a title asks for, in its order: "Write and review the script" asks for two."""
    found: list[str] = []
    before = "and"
    for word in _WORD.findall(_DIVIDER.sub(" and ", title.lower())):
        if before in _BEFORE_ACT and word in _ACTS:
            found.append(word)
        before = word
    return found


def _breadth(task: TaskOutline, asked: list[str]) -> Iterator[Finding]:
    reasons = []
    if len(task.title.split()) > TITLE_WORDS:
        reasons.append(f"its title has more than {TITLE_WORDS} words")
    if len(asked) > TITLE_ACTS:
        reasons.append(f"its title asks for {len(asked)} acts ({', '.join(asked)})")
    if found := _search(_BROAD, _BROAD_WORDS, task.title):
        reasons.append(f'its title says "{found}"')
    if len(task.criteria) > CRITERIA:
        reasons.append(f"it has {len(task.criteria)} completion criteria")
    if len(task.outputs) > OUTPUTS:
        reasons.append(f"it has {len(task.outputs)} outputs")
    if reasons:
        text = f"The task is broad: {', '.join(reasons)}. Split it into smaller ones."
        yield _warning("task_too_broad", task.at, text)


def _search(phrases: re.Pattern[str], words: frozenset[str], text: str) -> str:
    """Return the first of the phrases in a text; empty if there is none."""
    if words.isdisjoint(_WORD.findall(text.lower())):
        return ""
    found = phrases.search(text)
    return found.group() if found else ""


def _output(task: TaskOutline) -> Iterator[Finding]:
    if not task.outputs:
        text = "The task has no concrete output. Name the artifact it leaves, so that the next task can work from it."
        yield _warning("no_output", f"{task.at}/outputs", text)


def _dependencies(task: TaskOutline) -> Iterator[Finding]:
    count = len(task.depends_on)
    if count > DEPENDENCIES:
        text = f"The task waits for {count} others, and for the slowest of them. Gather their results step by step."
        yield _warning("too_many_dependencies", f"{task.at}/dependsOn", text)


def _criteria(task: TaskOutline) -> Iterator[Finding]:
    for index, text in enumerate(task.criteria):
        vague = _search(_VAGUE, _VAGUE_WORDS, text)
        if vague and not _NUMBER.search(text):
            reason = f'"{vague}" can be read in many ways'
        elif text.strip() and len(text.split()) < CRITERION_WORDS:
            reason = "one word says too little"
        else:
            continue
        here = f"{task.at}/completionCriteria/{index}"
        yield _warning(
            "criterion_unclear", here, f"The criterion is unclear: {reason}. Say what can be seen or counted."
        )


def _review(sketch: Outline, task: TaskOutline, asked: set[str]) -> Iterator[Finding]:
    if asked & _PRODUCE and asked & _REVIEW:
        text = "The title asks one agent to produce and to review the same thing. Give the review to another role."
        yield _warning("produces_and_reviews", f"{task.at}/title", text)
        return
    if not asked & _REVIEW or not task.role:
        return
    for index, key in enumerate(task.depends_on):
        maker = sketch.tasks[sketch.places[key]] if key in sketch.places else None
        if maker is not None and maker.outputs and role_id(maker.role) == role_id(task.role):
            made = ", ".join(maker.outputs[:3])
            text = f"The role {task.role} reviews what it has made itself ({made}). Give the review to another role."
            yield _warning("produces_and_reviews", f"{task.at}/dependsOn/{index}", text)
            return


def _attempts(task: TaskOutline) -> Iterator[Finding]:
    if task.gated and task.max_attempts == 1:
        text = "A rejection at this gate ends the task, because it has one attempt. Give it a retry with more."
        yield _warning("gate_without_retry", f"{task.at}/approvalGate", text)


def _serial(sketch: Outline) -> Iterator[Finding]:
    count = len(sketch.tasks)
    if count < SERIAL_TASKS:
        return
    depth = len(levels(sketch.upstream))
    if depth and count / depth < TASKS_A_LEVEL:
        text = f"{count:,} tasks are on {depth:,} levels, so little of the plan can run at once."
        yield _warning("plan_too_serial", "/tasks", f"{text} Remove dependencies that no task needs.")


def _role_names(sketch: Outline) -> Iterator[Finding]:
    used = {role_id(task.role) for task in sketch.tasks if task.role}
    for key, names in sketch.roles.items():
        name = names[0]
        plain = re.sub(r"[^a-z]+", " ", key.removeprefix("role_").lower()).split()
        if all(word in _VAGUE_ROLES or len(word) < 2 for word in plain):
            text = "The role's name does not tell what its agents do. Name it after the work, as in researcher."
            yield _warning("role_name_vague", pointer(["roles", name]), text)
        if key not in used:
            yield _warning("role_unused", pointer(["roles", name]), "No task names this role. Take it out, or use it.")


def _warning(code: str, where: str, text: str) -> Finding:
    return Finding(code, where, text, "warning")
