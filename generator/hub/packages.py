"""Pack what a push sends: bundles with their files, and what they change, in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from generator.dataset.atomic_write import write_atomically
from generator.dataset.json_file import read_json
from generator.hub.bundle import Bundle, Package
from generator.hub.card import card_files, settings_of
from generator.hub.choose import UNRECORDED
from generator.hub.client import Client
from generator.hub.local import (
    LocalFile,
    Unfit,
    make_standalone,
    read_file,
    take_inventory,
)
from generator.hub.plan import PushPlan
from generator.hub.pr_description import human
from generator.hub.preconditions import Judged, split
from generator.hub.remote import RemoteFile
from generator.problems.messages import one_line, plural


@dataclass(frozen=True)
class Wishes:
    """Hold what a person asked of a push: `reasons` allow the objections of rules.

    `card` asks for the dataset's card beside the definitions.
    """

    reasons: Mapping[str, str]
    message: str = ""
    delete: tuple[str, ...] = ()
    card: bool = False


def pack(
    dataset: Path,
    repo: str,
    folder: Path,
    bundles: Iterable[Bundle],
    judged: Judged,
    wishes: Wishes,
) -> list[Package]:
    """Return each bundle with its files, read once however many share them.

    The card, and the standalone form of tests that are not, are written to `folder` and
    sent from there. Raises Failure for what can't be pushed.
    """
    from huggingface_hub import get_token

    inventory = take_inventory(dataset)
    secret = get_token() or ""
    card = card_files(dataset, settings_of(dataset, repo)) if wishes.card else {}
    for path, content in card.items():
        write_atomically(folder / path, content)
    tests = make_standalone(dataset, inventory.tests, folder, secret) or ()
    if tests:
        inventory = replace(inventory, tests=tests)

    @cache
    def read(path: str) -> LocalFile:
        is_made = path in tests or path in card
        return read_file(folder if is_made else dataset, path, secret)

    unrecorded = read_json(dataset, UNRECORDED).value
    named = set(unrecorded) if isinstance(unrecorded, dict) else set()
    made = []
    for bundle in bundles:
        paths = [path for key in bundle.keys for path in inventory.owned.get(key, ())]
        paths += [*inventory.shared(bundle.keys, named), *card]
        both = sorted(set(paths) & set(wishes.delete))
        if both:
            raise Unfit(f"{one_line(both[0])} is pushed, so that it can't be deleted.")
        package = Package(
            dataset,
            bundle,
            tuple(map(read, sorted(paths))),
            judged,
            tuple(split(judged.of(bundle.keys), wishes.reasons)[1]),
            wishes.reasons,
            " ".join(one_line(wishes.message, 200).split()),
            wishes.delete,
        )
        made.append(package)
    return made


def may_write(client: Client) -> str:
    """Return why nothing can be sent, empty where something can be."""
    account = client.account()
    if account is None:
        return "There is no token: run `hf auth login`, or set HF_TOKEN."
    token = (account.get("auth") or {}).get("accessToken") or {}
    if token.get("role") == "read":
        return (
            "The token has read access only: create one with write access at "
            f"{client.api.endpoint}/settings/tokens, then `hf auth login --force`."
        )
    return ""


def lines_of(client: Client, plan: PushPlan) -> Iterator[str]:
    """Yield the changes of a plan, a line for each file."""
    delta = plan.delta
    where = f"pull request {plan.number}" if plan.pull else plan.revision
    where = "a new pull request" if plan.opens else where
    yield f"{client.repo}, {where}: {one_line(plan.package.title, 200)}"
    adds = {file.path for file in delta.added}
    does: list[tuple[str, LocalFile | RemoteFile]] = [
        *(("add" if f.path in adds else "change", f) for f in delta.sent),
        *(("delete", f) for f in delta.deleted),
    ]
    width = max((len(one_line(file.path)) for _, file in does), default=0)
    for what, file in does:
        yield (f"  {what:<6}  {one_line(file.path):<{width}}  {human(file.size):>10}")
    total = sum(file.size for file in delta.sent)
    yield (
        f"  {len(delta.added)} to add, {len(delta.changed)} to change, "
        f"{len(delta.deleted)} to delete; {human(total)}; "
        f"{plural(delta.same, 'file')} unchanged"
    )
    if plan.pull is not None and not plan.owns_text:
        yield "  its text stays: this command did not write it"
