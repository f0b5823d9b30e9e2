"""Tags that a change gives to a definition, and that no file shows to be so."""

from __future__ import annotations

from generator.dataset.definition import LoadedDefinition
from generator.dataset.model_figures import model_figures
from generator.ops.registry import op_specs
from generator.problems.messages import one_line, plural, quote, some
from generator.review.answers import CLAIMED, UNKNOWN, YES, PointFinding
from generator.review.change import Change
from generator.review.context import ReviewContext
from generator.rules.figures import says_something
from generator.rules.routes import is_function, routes_to


def tags_finding(
    change: Change, new: LoadedDefinition, known: ReviewContext
) -> PointFinding:
    """Answer whether the files show what the tags say."""
    lesser = known.objections.get((change.key, "lesser tags"))
    if (new_ones := claimed_tags(change.old, new)) and not known.trust_evidence:
        seen = one_line(str(lesser[0])) if lesser else some(new_ones, 3)
        return PointFinding(UNKNOWN, f"{CLAIMED}{seen}", is_claim=True)
    if lesser:
        return PointFinding(UNKNOWN, one_line(str(lesser[0])))
    models = new.tag_values("model")
    if not models:
        return PointFinding(UNKNOWN, "no model: tag names where it is from")
    strange = [quote(name) for name in models if name not in model_figures()]
    if strange:
        seen = f"no figures of {some(strange, 3)} are known here: compare config.json"
        return PointFinding(UNKNOWN, seen)
    if alone := [quote(name) for name in models if not says_something(name, new)]:
        return PointFinding(UNKNOWN, f"no figure of {some(alone, 3)} is of this one")
    seen = f"{plural(len(new.tags), 'tag')}, and no rule on tags or constants objects"
    return PointFinding(YES, seen)


def claimed_tags(old: LoadedDefinition | None, new: LoadedDefinition) -> list[str]:
    """Return in words the tags that a definition had not and that nothing here shows.

    And a status that it has no more: what is not called unverified looks verified.
    Figures show a model, which rules compare with the axes and shares; the name shows
    the function that its tests call. A new definition claims nothing by its tags: what
    it is approved for are its text and its evidence.
    """
    if old is None:
        return []
    more = [quote(t) for t in new.tags if t not in old.tags and not _is_shown(t, new)]
    gone = (t for t in old.tags if t not in new.tags and t.startswith("status:"))
    return more + [f"{quote(tag)} is gone" for tag in gone]


def _is_shown(tag: str, new: LoadedDefinition) -> bool:
    key, _, value = tag.partition(":")
    match key:
        case "model":
            return value in model_figures() and says_something(value, new)
        case "tp" | "ep":
            models = (m for m in new.tag_values("model") if m in model_figures())
            return any(says_something(model, new) for model in models)
        case "fi_api":
            spec = op_specs().get(new.op_type)
            is_named = new.name.startswith(f"{value.rpartition('.')[2]}_")
            is_asked = any(value == api for api, _ in routes_to(new))
            is_called = spec is not None and value == spec.kernel_of(new.name)
            return (is_named and is_function(value)) or is_asked or is_called
    return False
