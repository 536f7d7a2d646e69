"""Skills kept as folders, in the open Agent Skills format: told in a line, read when they are wanted."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import pydantic

from toolcrib._folder import Folder
from toolcrib._portal import off_loop
from toolcrib.errors import ToolExecutionError, warn
from toolcrib.limits import MAX_PATH_CHARS, MAX_SKILLS, SKILL_SCRIPT_SECONDS
from toolcrib.sources._child import Child, Ended
from toolcrib.sources._skill_card import SKILL_FILE, SkillCard, body_of, read_card
from toolcrib.tools import Tool
from toolcrib.types import ToolParameter

__all__ = ["SkillFolder", "has_skills"]

_Path = Annotated[str, pydantic.Field(max_length=MAX_PATH_CHARS, examples=["references/forms.md"])]
_Arguments = Annotated[tuple[Annotated[str, pydantic.Field(max_length=10_000)], ...], pydantic.Field(max_length=100)]

_MOST_CHARS = 50_000
_MOST_LISTED = 100
_GRACE_SECONDS = 5.0


class SkillFolder:
    """Skills that are kept as folders with a SKILL.md, as one entry of `tools=[...]`.

    The system prompt has the name and the description of each. A model reads the whole instructions with the tool
    `read_skill` when it needs them, and the files beside them with `read_skill_file`, which sees nothing outside the
    skill's folder. Scripts are run only where that is allowed. The folders are looked at once, when this is made; name
    all of them here, since a second SkillFolder has tools of the same names.

    Args:
        *paths: Folders of skills, or of one skill each. A skill that breaks the rules of the format, or has the name
            of one before it, is left out with a warning.
        allow_scripts: Whether there is also `run_skill_script`, which runs what is in the `scripts` folder of a skill,
            with this user's rights, an environment without keys, and a deadline. Allow it for skills that you trust
            as you would trust any program.
        timeout: Seconds a script may run before it is ended with all it started.

    Raises:
        NotADirectoryError: One of the paths is no folder.
        ValueError: There is no skill in a folder.
        MissingExtraError: The `skills` extra is not installed.
    """

    def __init__(
        self, *paths: str | os.PathLike[str], allow_scripts: bool = False, timeout: float = SKILL_SCRIPT_SECONDS
    ) -> None:
        self._cards = _loaded(paths)
        self._allow_scripts = allow_scripts
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"SkillFolder({', '.join(self._cards)})"

    @property
    def skills(self) -> tuple[SkillCard, ...]:
        """What each skill says of itself, in order."""
        return tuple(self._cards.values())

    @property
    def instructions(self) -> str:
        """What the system prompt is told: the skills there are, a line for each."""
        if not self._cards:
            return ""
        lines = [f"- {card.name}: {card.description}" for card in self.skills]
        return "\n".join(["Skills: before a task that one of these is for, read it with read_skill.", *lines])

    def get_tools(self) -> list[Tool]:
        """Return the tools that read skills and, where it is allowed, the one that runs their scripts."""
        if not self._cards:
            return []
        which = ToolParameter("skill", "str", "The skill's name.", required=True, options=list(self._cards))
        reading = [
            Tool(method, parameters=[which], effect="read") for method in (self.read_skill, self.read_skill_file)
        ]
        # A script ends by its own deadline, which the call outlives by what it takes to end it.
        longest = self._timeout + _GRACE_SECONDS
        running = Tool(self.run_skill_script, parameters=[which], effect="destructive", timeout=longest)
        tools = [*reading, running] if self._allow_scripts else reading
        return [tool.replace(origin=f"skills:{next(iter(self._cards))}") for tool in tools]

    as_tools = get_tools

    def read_skill(self, skill: str) -> str:
        """Read the instructions of a skill, and which files it has.

        Args:
            skill: The skill's name.
        """
        card, folder = self._found(skill)
        files = [entry.path for entry in folder.files() if entry.path != SKILL_FILE]
        listed = [*files[:_MOST_LISTED], *(["..."] if len(files) > _MOST_LISTED else [])]
        told = f"\n\nFiles of this skill: {', '.join(listed)}" if files else ""
        return f"{body_of(folder.text(SKILL_FILE)) or card.description}{told}"

    def read_skill_file(
        self, skill: str, path: _Path, start: Annotated[int, pydantic.Field(ge=0, le=100_000_000)] = 0
    ) -> str:
        """Read a text file of a skill.

        Args:
            skill: The skill's name.
            path: The file, relative to the skill's folder.
            start: The character to begin at, for the rest of a long file.
        """
        text = self._found(skill)[1].text(path)
        part = text[start : start + _MOST_CHARS]
        end = start + len(part)
        return part if end >= len(text) else f"{part}\n[{len(text):,} characters; go on with start={end}]"

    async def run_skill_script(self, skill: str, script: _Path, arguments: _Arguments = ()) -> dict[str, Any]:
        """Run a script of a skill, and return its exit status, output and errors.

        Args:
            skill: The skill's name.
            script: The script, as in scripts/convert.py.
            arguments: Its arguments, one text each; no shell reads them.
        """
        card, folder = self._found(skill)
        command = [*_program(card, folder, script), *arguments]
        if any("\0" in argument for argument in command):
            raise ToolExecutionError("an argument of a script cannot hold the character NUL")
        try:
            child = Child(command, cwd=card.path, env=_environment())
        except OSError as error:
            raise ToolExecutionError(f"{script} cannot be run: {error.strerror}") from None
        try:
            return _told(await off_loop(child.wait, self._timeout))
        except BaseException:  # nobody waits for it any longer
            child.end()
            raise

    def _found(self, skill: str) -> tuple[SkillCard, Folder]:
        card = self._cards.get(skill)
        if card is None:
            raise ToolExecutionError(f"there is no skill {skill!r:.80}: there are {', '.join(self._cards)}")
        return card, Folder(card.path)


# -- the folders


def has_skills(path: Path) -> bool:
    """Whether a path is a skill's folder, or a folder of such folders."""
    with suppress(OSError):  # not one that may be looked at
        return path.is_dir() and next(_skill_folders(path), None) is not None
    return False


def _skill_folders(path: Path) -> Iterator[Path]:
    if (path / SKILL_FILE).is_file():
        yield path
        return
    for folder in sorted(path.iterdir()):
        if not folder.name.startswith(".") and (folder / SKILL_FILE).is_file():
            yield folder


def _loaded(paths: tuple[str | os.PathLike[str], ...]) -> dict[str, SkillCard]:
    cards: dict[str, SkillCard] = {}
    for path in map(Path, paths):
        if not path.is_dir():
            raise NotADirectoryError(f"{path} is not a folder: name a folder of skills, or of one skill")
        folders = [folder.resolve() for folder in _skill_folders(path)]
        if not folders:
            raise ValueError(f"there is no skill in {path}: a skill is a folder with a {SKILL_FILE}")
        if len(folders) > MAX_SKILLS:
            raise ValueError(f"{path} holds more than {MAX_SKILLS} skills: name those you want")
        for folder in folders:
            if (card := _card(folder, cards)) is not None:
                cards[card.name] = card
    return cards


def _card(folder: Path, others: Mapping[str, SkillCard]) -> SkillCard | None:
    try:
        card = read_card(Folder(folder).text(SKILL_FILE), folder)
    except (ValueError, ToolExecutionError) as error:
        warn(f"the skill in {folder.name} is left out: {error}")
        return None
    if (other := others.get(card.name)) is not None and other.path != folder:
        warn(f"the skill in {folder.name} is left out: {other.path.name} has the name {card.name!r} already")
        return None
    return card


# -- scripts

_INTERPRETERS = {".py": (sys.executable,), ".sh": ("bash", "sh"), ".js": ("node",), ".mjs": ("node",)}
_SCRIPTS = "scripts/"
#: What a script may know of this process: no keys.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "SYSTEMROOT")


def _program(card: SkillCard, folder: Folder, script: str) -> list[str]:
    """Return what runs a script: the script itself where it says how, else the interpreter of its kind."""
    if not script.startswith(_SCRIPTS) or ".." in script.split("/"):
        raise ToolExecutionError(f"{script} is not in {_SCRIPTS}: only what is there can be run")
    begins = folder.read(script)[:2]
    path = card.path / script
    if begins == b"#!" and os.access(path, os.X_OK):
        return [str(path)]
    program = next(filter(None, map(shutil.which, _INTERPRETERS.get(path.suffix, ()))), None)
    if program is None:
        raise ToolExecutionError(f"there is nothing here that runs {script}")
    return [program, str(path)]


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _KEPT if name in os.environ}


def _told(ended: Ended) -> dict[str, Any]:
    told: dict[str, Any] = {"status": ended.status, "output": ended.output}
    if ended.errors:
        told["errors"] = ended.errors
    if ended.cut:
        told["cut"] = "it wrote more than is kept"
    return told
