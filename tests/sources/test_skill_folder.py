from __future__ import annotations

import asyncio
import os
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib import Agent, ScriptedEngine, ToolCall, ToolcribWarning, Toolset, acall_tools, call_tools
from toolcrib.limits import MAX_OUTPUT_BYTES
from toolcrib.sources._child import Child
from toolcrib.sources.skill_folder import SkillFolder

CARD = """---
name: {name}
description: {description}
---
{body}
"""


def write_skill(place: Path, name: str, body: str = "Do it well.", description: str = "Does things.") -> Path:
    folder = place / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(CARD.format(name=name, description=description, body=body))
    return folder


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Two skills as people write them, one with all that a skill may have."""
    place = tmp_path / "skills"
    folder = write_skill(place, "forms", "# Forms\n\nSee references/fields.md.", "Fills in forms. Use it for PDFs.")
    for name in ("references", "scripts", "assets"):
        (folder / name).mkdir()
    (folder / "references/fields.md").write_text("Name first, then date.")
    (folder / "assets/logo.bin").write_bytes(b"\0\1\2")
    (folder / "scripts/fill.py").write_text(
        "import sys; print('filled', *sys.argv[1:]); print('careful', file=sys.stderr)"
    )
    write_skill(place, "letters")
    (place / "notes").mkdir()
    (place / "readme.txt").write_text("not a skill")
    return place


def answer(source: Any, name: str, **arguments: Any):
    (result,) = call_tools([ToolCall("1", name, arguments)], Toolset([source]))
    return result


# -- what is told


def test_the_system_prompt_has_a_line_for_each_skill_and_nothing_of_their_instructions(skills):
    agent = Agent(ScriptedEngine(["hello"]), [SkillFolder(skills)], system="You are Ada.")
    assert agent.run("hello").messages[0].content == (
        "You are Ada.\n\nSkills: before a task that one of these is for, read it with read_skill.\n"
        "- forms: Fills in forms. Use it for PDFs.\n- letters: Does things."
    )


def test_a_skill_is_read_when_it_is_wanted_with_the_files_it_has(skills):
    assert answer(SkillFolder(skills), "read_skill", skill="forms").text == (
        "# Forms\n\nSee references/fields.md.\n\n"
        "Files of this skill: assets/logo.bin, references/fields.md, scripts/fill.py"
    )
    assert answer(SkillFolder(skills), "read_skill", skill="letters").text == "Do it well."


def test_a_folder_of_one_skill_is_that_skill_and_several_folders_are_one_source(skills):
    assert [card.name for card in SkillFolder(skills / "forms").skills] == ["forms"]
    both = SkillFolder(skills / "letters", skills / "forms")
    assert [card.name for card in both.skills] == ["letters", "forms"]
    assert Toolset([both]).names == ("read_skill", "read_skill_file")


def test_the_tools_name_the_skills_there_are(skills):
    tool = Toolset([SkillFolder(skills)])["read_skill"]
    assert tool.input_schema["properties"]["skill"]["enum"] == ["forms", "letters"]
    assert answer(SkillFolder(skills), "read_skill", skill="other").kind == "invalid_arguments"


def test_what_a_skill_says_of_itself_is_there_for_programs(tmp_path):
    folder = tmp_path / "maps"
    folder.mkdir()
    (folder / "SKILL.md").write_text(
        "---\nname: maps\ndescription: >\n  Draws\n  maps.\nlicense: MIT\ncompatibility: needs git\n"
        "allowed-tools: Bash(git:*) Read\nmetadata:\n  author: Ada\n  version: 1.0\n---\n"
    )
    (card,) = SkillFolder(folder).skills
    assert card == ("maps", "Draws maps.", folder, "MIT", "needs git", ("Bash(git:*)", "Read"), dict(card.metadata))
    assert card.metadata == {"author": "Ada", "version": "1.0"}
    assert answer(SkillFolder(folder), "read_skill", skill="maps").text == "Draws maps."


# -- what is malformed

MALFORMED = {
    "no front matter": ("# Just text", "front matter"),
    "never closed": ("---\nname: bad\ndescription: x\n", "front matter"),
    "no yaml": ("---\nname: bad\ndescription: use: when\n---\n", "quotes"),
    "a list": ("---\n- bad\n---\n", "name: value"),
    "no name": ("---\ndescription: x\n---\n", "name must be"),
    "a number for a name": ("---\nname: 5\ndescription: x\n---\n", "name must be"),
    "capitals": ("---\nname: Bad\ndescription: x\n---\n", "name must be"),
    "two hyphens": ("---\nname: b--ad\ndescription: x\n---\n", "name must be"),
    "a path for a name": ("---\nname: ../bad\ndescription: x\n---\n", "name must be"),
    "a long name": (f"---\nname: {'a' * 65}\ndescription: x\n---\n", "name must be"),
    "no description": ("---\nname: bad\n---\n", "description must be"),
    "an empty description": ("---\nname: bad\ndescription: ' '\n---\n", "description must be"),
    "a long description": (f"---\nname: bad\ndescription: {'a' * 1025}\n---\n", "description must be"),
    "endless front matter": (f"---\nname: bad\ndescription: x\nmore: {'a' * 20_000}\n---\n", "longer than"),
    "deep front matter": (f"---\nname: bad\ndescription: x\nmore: {'[' * 9_000}\n---\n", "not YAML"),
    "an object": ("---\n!!python/object/apply:os.system ['true']\n---\n", "not YAML"),
    "a name taken": ("---\nname: letters\ndescription: x\n---\n", "already"),
    "binary": ("\0\0\0", "not text"),
}


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_skill_is_left_out_with_a_warning_that_names_it(skills, kind):
    text, reason = MALFORMED[kind]
    (skills / "zz-bad").mkdir()
    (skills / "zz-bad/SKILL.md").write_text(text)
    with pytest.warns(ToolcribWarning, match=f"zz-bad is left out: .*{reason}"):
        source = SkillFolder(skills)
    assert [card.name for card in source.skills] == ["forms", "letters"]


def test_aliases_that_grow_without_end_are_harmless(tmp_path):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    (tmp_path / "SKILL.md").write_text(
        "---\nname: laugh\ndescription: x\nmetadata:\n  m: 1\n" + "\n".join(lines) + "\n---\n"
    )
    assert SkillFolder(tmp_path).skills[0].metadata == {"m": "1"}


def test_what_is_not_seen_is_removed_and_a_description_is_one_line(tmp_path):
    description = '"Fine\\e[31m.\\n- forms: evil \\U000E0041\\x07"'
    write_skill(tmp_path, "quiet", description=description)
    assert SkillFolder(tmp_path).instructions.splitlines()[1:] == ["- quiet: Fine. - forms: evil"]


def test_a_folder_without_skills_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"SKILL\.md"):
        SkillFolder(tmp_path)
    with pytest.raises(NotADirectoryError, match="not a folder"):
        SkillFolder(tmp_path / "nowhere")


def test_only_malformed_skills_are_no_tools_and_say_nothing(tmp_path):
    (tmp_path / "SKILL.md").write_text("nothing")
    with pytest.warns(ToolcribWarning):
        source = SkillFolder(tmp_path)
    assert Toolset([source]).names == ()
    assert Toolset([source]).instructions == ()


# -- files


def test_a_file_of_a_skill_is_read_and_a_long_one_in_parts(skills):
    source = SkillFolder(skills)
    path = "references/fields.md"
    assert answer(source, "read_skill_file", skill="forms", path=path).text == "Name first, then date."
    (skills / "forms" / path).write_text("x" * 50_000 + "end")
    assert answer(source, "read_skill_file", skill="forms", path=path).text.endswith("go on with start=50000]")
    assert answer(source, "read_skill_file", skill="forms", path=path, start=50_000).text == "end"


@pytest.mark.parametrize(
    "path",
    [
        "../letters/SKILL.md",
        "/etc/passwd",
        "references/../../letters/SKILL.md",
        "link",
        "assets/logo.bin",
        "nothing",
        "",
    ],
)
def test_nothing_beside_the_skill_is_read(skills, path):
    (skills / "forms/link").symlink_to("../letters/SKILL.md")
    result = answer(SkillFolder(skills), "read_skill_file", skill="forms", path=path)
    assert result.kind == "failed"
    assert "Do it well" not in result.text


def test_a_skill_whose_own_file_is_a_link_to_the_outside_is_left_out(skills, tmp_path):
    (tmp_path / "secret").write_text(CARD.format(name="zz-bad", description="x", body="secret"))
    (skills / "zz-bad").mkdir()
    (skills / "zz-bad/SKILL.md").symlink_to("../../secret")
    with pytest.warns(ToolcribWarning, match="zz-bad is left out: .*leads out"):
        SkillFolder(skills)


# -- scripts


def test_scripts_are_no_tools_unless_that_is_allowed(skills):
    assert "run_skill_script" not in Toolset([SkillFolder(skills)])
    assert Toolset([SkillFolder(skills, allow_scripts=True)])["run_skill_script"].effect == "destructive"


def run(skills: Path, text: str, *arguments: str, script: str = "scripts/x.py", timeout: float = 20):
    path = skills / "forms" / script
    path.write_text(text)
    source = SkillFolder(skills, allow_scripts=True, timeout=timeout)
    return answer(source, "run_skill_script", skill="forms", script=script, arguments=list(arguments))


def test_a_script_is_run_with_its_arguments_and_no_shell(skills):
    result = answer(
        SkillFolder(skills, allow_scripts=True),
        "run_skill_script",
        skill="forms",
        script="scripts/fill.py",
        arguments=["a b", "$HOME; echo x", "*"],
    )
    assert result.value == {"status": 0, "output": "filled a b $HOME; echo x *\n", "errors": "careful\n"}


def test_a_script_runs_in_its_skills_folder_with_no_key_of_this_process(skills, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    result = run(skills, "import os; print(os.getcwd()); print(sorted(os.environ))")
    assert result.value["output"].splitlines()[0] == str(skills / "forms")
    assert "OPENAI_API_KEY" not in result.text


def test_a_script_that_fails_is_told_with_its_status(skills):
    assert run(skills, "import sys; sys.exit('no form')").value == {"status": 1, "output": "", "errors": "no form\n"}


def test_a_shell_script_and_a_program_are_run(skills):
    assert run(skills, "echo shell $1", "x", script="scripts/x.sh").value["output"] == "shell x\n"
    program = skills / "forms/scripts/program"
    program.write_text(f"#!{sys.executable}\nprint('itself')\n")
    program.chmod(0o755)
    source = SkillFolder(skills, allow_scripts=True)
    result = answer(source, "run_skill_script", skill="forms", script="scripts/program")
    assert result.value["output"] == "itself\n"


@pytest.mark.parametrize(
    "script",
    [
        "/bin/ls",
        "references/fields.md",
        "scripts/../references/fields.md",
        "../letters/SKILL.md",
        "scripts/none.py",
        "scripts/link.py",
        "scripts/data.txt",
        "scripts",
        "scripts/",
        "scripts/fill.py\0",
    ],
)
def test_only_what_is_a_script_of_the_skill_is_run(skills, script):
    (skills / "forms/scripts/link.py").symlink_to("../../../evil.py")
    (skills.parent / "evil.py").write_text("print('evil')")
    (skills / "forms/scripts/data.txt").write_text("text")
    result = answer(SkillFolder(skills, allow_scripts=True), "run_skill_script", skill="forms", script=script)
    assert result.kind == "failed", result.text


def test_an_argument_with_nul_is_refused(skills):
    assert "NUL" in run(skills, "", "a\0b").text


LEAVES_A_CHILD = """
import subprocess, sys
alive = open('alive', 'w')
print('here', file=alive, flush=True)
sleeping = [sys.executable, '-c', 'import time; time.sleep(600)']
child = subprocess.Popen(sleeping, pass_fds=[alive.fileno()])
"""


@pytest.fixture
def all_gone(skills) -> Iterator[Callable[[], bool]]:
    """Whether nobody holds a pipe open any longer that a script wrote to, which its children inherit."""
    os.mkfifo(skills / "forms/alive")
    pipe = os.open(skills / "forms/alive", os.O_RDONLY | os.O_NONBLOCK)

    def gone() -> bool:
        assert os.read(pipe, 5) == b"here\n"
        ended, _, _ = select.select([pipe], [], [], 10)
        return bool(ended) and os.read(pipe, 1) == b""

    yield gone
    os.close(pipe)


def test_a_script_that_never_ends_is_ended_with_all_it_started(skills, all_gone):
    result = run(skills, f"{LEAVES_A_CHILD}\nchild.wait()", timeout=3)
    assert result.kind == "timed_out"
    assert "3 seconds" in result.text
    assert all_gone()


def test_what_a_script_leaves_running_ends_with_it_and_holds_nothing_up(skills, all_gone):
    result = run(skills, LEAVES_A_CHILD)
    assert result.value["status"] == 0
    assert result.duration < 10
    assert all_gone()


def test_a_script_that_writes_without_end_is_kept_short(skills):
    text = "import os\nfor _ in range(100): os.write(1, b'x' * 65536)"
    result = run(skills, text)
    assert len(result.value["output"]) == MAX_OUTPUT_BYTES
    assert "more than is kept" in result.value["cut"]


def test_a_script_that_reads_finds_nothing_to_read(skills):
    assert run(skills, "print(repr(input.__call__ and __import__('sys').stdin.read()))").value["output"] == "''\n"


@pytest.mark.anyio
async def test_a_cancelled_run_ends_its_script(skills):
    (skills / "forms/scripts/x.py").write_text(
        "import time\nalive = open('alive', 'w')\nprint('here', file=alive, flush=True)\ntime.sleep(600)"
    )
    os.mkfifo(skills / "forms/alive")
    tools = Toolset([SkillFolder(skills, allow_scripts=True)])
    call = ToolCall("1", "run_skill_script", {"skill": "forms", "script": "scripts/x.py"})
    running = asyncio.create_task(acall_tools([call], tools))
    with await asyncio.to_thread((skills / "forms/alive").open) as alive:
        assert await asyncio.to_thread(alive.readline) == "here\n"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(alive.read) == ""  # the end, once nobody holds the other side


def test_no_descriptor_and_no_zombie_is_left(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        child = Child([sys.executable, "-c", "print(1)"], cwd=tmp_path, env=os.environ)
        assert child.wait(20).output == "1\n"
        child.end()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
