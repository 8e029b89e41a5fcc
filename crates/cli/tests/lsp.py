"""An editor, as far as the language server can tell: pygls opens a file, looks, types, and fixes.

lsp.py ANTIFREEZE FOLDER: says what it saw as JSON on the last line.
"""

import asyncio
import json
import pathlib
import sys

from lsprotocol import types
from pygls.lsp.client import BaseLanguageClient

LEAK = """\
import torch
from torch import nn

def train(model: nn.Module, loader, optimizer, criterion):
    total = 0.0  # 😀
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


class Editor(BaseLanguageClient):
    def __init__(self):
        super().__init__("an-editor", "1")
        self.published = asyncio.Queue()

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(told):
            self.published.put_nowait(told)

    async def told(self):
        return await asyncio.wait_for(self.published.get(), 30)


def changed(text, edits):
    """The text with an editor's edits made; columns count UTF-16 units."""
    lines = text.splitlines(keepends=True)
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        assert edit.range.start.line == edit.range.end.line
        line = lines[edit.range.start.line].encode("utf-16-le")
        start, end = 2 * edit.range.start.character, 2 * edit.range.end.character
        line = line[:start] + edit.new_text.encode("utf-16-le") + line[end:]
        lines[edit.range.start.line] = line.decode("utf-16-le")
    return "".join(lines)


async def use(program, folder):
    editor = Editor()
    await editor.start_io(program, "check", "--lsp", cwd=folder)
    root = pathlib.Path(folder).as_uri()
    hello = await editor.initialize_async(
        types.InitializeParams(capabilities=types.ClientCapabilities(), root_uri=root)
    )
    editor.initialized(types.InitializedParams())
    uri = root + "/not%20saved.py"
    document = types.TextDocumentItem(uri, "python", 1, LEAK)
    editor.text_document_did_open(types.DidOpenTextDocumentParams(document))
    first = await editor.told()

    found = first.diagnostics[0]
    actions = await editor.text_document_code_action_async(
        types.CodeActionParams(
            types.TextDocumentIdentifier(uri), found.range, types.CodeActionContext([found])
        )
    )
    quick = next(action for action in actions if action.kind == types.CodeActionKind.QuickFix)
    edits = quick.edit.changes[uri]
    fixed = changed(LEAK, edits)

    # As it is typed: one change for each edit, where it is.
    changes = [types.TextDocumentContentChangePartial(edit.range, edit.new_text) for edit in reversed(edits)]
    version = types.VersionedTextDocumentIdentifier(2, uri)
    editor.text_document_did_change(types.DidChangeTextDocumentParams(version, changes))
    second = await editor.told()

    # In the middle of a word there is a mistake, and nobody minds.
    broken = [types.TextDocumentContentChangeWholeDocument(LEAK.replace("total += loss", "total += (loss"))]
    version = types.VersionedTextDocumentIdentifier(3, uri)
    editor.text_document_did_change(types.DidChangeTextDocumentParams(version, broken))
    third = await editor.told()

    editor.text_document_did_close(
        types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
    )
    last = await editor.told()
    await editor.shutdown_async(None)
    editor.exit(None)
    status = await asyncio.wait_for(editor._server.wait(), 30)
    return {
        "server": hello.server_info.name,
        "found": [[d.code, d.range.start.line, d.range.start.character, d.source] for d in first.diagnostics],
        "titles": [[action.title, action.kind] for action in actions],
        "fixed": fixed,
        "after_fix": [[second.version, [d.code for d in second.diagnostics]]],
        "while_broken": [d.code for d in third.diagnostics],
        "closed": len(last.diagnostics),
        "status": status,
    }


print(json.dumps(asyncio.run(use(*sys.argv[1:]))))
