"""A skill in the open Agent Skills format: a line in the prompt, the rest when the model asks for it."""

import tempfile
from pathlib import Path

from toolcrib import Agent, ScriptedEngine, SkillFolder

SKILL = """---
name: greetings
description: Greets people. Use it whenever somebody says hello.
---
Greet by name, then run scripts/greet.py with the name.
"""
SCRIPT = "import sys; print(f'A very good morning, {sys.argv[1]}!')"

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "greetings")
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(SKILL, encoding="utf-8")
        (folder / "scripts" / "greet.py").write_text(SCRIPT, encoding="utf-8")
        engine = ScriptedEngine(  # in place of a model
            [
                [("read_skill", {"skill": "greetings"})],
                [("run_skill_script", {"skill": "greetings", "script": "scripts/greet.py", "arguments": ["Ada"]})],
                "Done.",
            ]
        )
        agent = Agent(engine, [SkillFolder(place, allow_scripts=True)])
        for message in agent.run("Hello, I am Ada.").messages:
            print(f"{message.role}: {message.content}")
