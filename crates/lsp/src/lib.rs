//! The linter in an editor: findings and fixes as you type.
//!
//! One thread takes messages as they come, and answers the newest state of a text only: what was
//! typed while it looked is looked at next, not what was typed in between. The texts are those of
//! the editor, saved or not. Nothing is written to a file; fixes are offered, and the editor
//! makes them.

mod answer;
mod texts;

use answer::Answerer;
use antifreeze_check::settings::Selection;
use antifreeze_lint::here::Here;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, Response};
use lsp_types::notification::{
    DidChangeTextDocument, DidCloseTextDocument, DidOpenTextDocument, DidSaveTextDocument,
    Notification as _, PublishDiagnostics,
};
use lsp_types::request::{CodeActionRequest, Request as _};
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, InitializeParams,
    PositionEncodingKind, PublishDiagnosticsParams, SaveOptions, ServerCapabilities,
    TextDocumentSyncCapability, TextDocumentSyncKind, TextDocumentSyncOptions,
    TextDocumentSyncSaveOptions, Uri,
};
use serde::de::DeserializeOwned;
use std::path::Path;
use texts::{Encoding, Texts};

/// What the server needs to know of the machine and the project.
pub trait Surroundings {
    fn here(&self) -> Here;
    /// The rules for a file, by the configuration nearest to it.
    fn selection(&self, file: &Path) -> Result<Selection, String>;
}

/// Serves an editor on standard input and output until it says goodbye.
pub fn serve(surroundings: &impl Surroundings) -> Result<(), String> {
    let (connection, threads) = Connection::stdio();
    let served = serve_on(&connection, surroundings);
    drop(connection);
    // Standard input is still open when an editor died in mid-word; that is its own business.
    if served.is_ok() {
        threads
            .join()
            .map_err(|error| format!("talking to the editor: {error}"))?;
    }
    served
}

fn serve_on(connection: &Connection, surroundings: &impl Surroundings) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("talking to the editor: {error}");
    let (id, parameters) = connection
        .initialize_start()
        .map_err(|error| failed(&error))?;
    let encoding = encoding(&parameters);
    let hello = serde_json::json!({
        "capabilities": capabilities(encoding),
        "serverInfo": { "name": "antifreeze", "version": env!("CARGO_PKG_VERSION") },
    });
    connection
        .initialize_finish(id, hello)
        .map_err(|error| failed(&error))?;
    let mut server = Server {
        connection,
        texts: Texts::default(),
        answerer: Answerer {
            surroundings,
            encoding,
        },
        stale: Vec::new(),
    };
    server.run().map_err(|error| failed(&error))
}

/// Columns in bytes where the editor can count so, else as the protocol began: in the units of
/// UTF-16.
fn encoding(parameters: &serde_json::Value) -> Encoding {
    let offered = serde_json::from_value::<InitializeParams>(parameters.clone())
        .ok()
        .and_then(|parameters| parameters.capabilities.general)
        .and_then(|general| general.position_encodings)
        .unwrap_or_default();
    if offered.contains(&PositionEncodingKind::UTF8) {
        Encoding::Utf8
    } else {
        Encoding::Utf16
    }
}

fn capabilities(encoding: Encoding) -> ServerCapabilities {
    ServerCapabilities {
        position_encoding: Some(encoding.kind()),
        text_document_sync: Some(TextDocumentSyncCapability::Options(
            TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(
                    SaveOptions::default(),
                )),
                ..TextDocumentSyncOptions::default()
            },
        )),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::SOURCE_FIX_ALL,
            ]),
            ..CodeActionOptions::default()
        })),
        ..ServerCapabilities::default()
    }
}

struct Server<'a, S> {
    connection: &'a Connection,
    texts: Texts,
    answerer: Answerer<'a, S>,
    /// Texts that have changed since they were looked at.
    stale: Vec<Uri>,
}

impl<S: Surroundings> Server<'_, S> {
    fn run(&mut self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        loop {
            // What was typed already is taken in before anything is looked at.
            let message = match self.connection.receiver.try_recv() {
                Ok(message) => message,
                Err(_) => match self.stale.pop() {
                    Some(uri) => {
                        self.tell(uri)?;
                        continue;
                    }
                    None => match self.connection.receiver.recv() {
                        Ok(message) => message,
                        // The editor is gone.
                        Err(_) => return Ok(()),
                    },
                },
            };
            match message {
                Message::Request(request) => {
                    if self.connection.handle_shutdown(&request)? {
                        return Ok(());
                    }
                    let response = self.answer(request);
                    self.connection.sender.send(response.into())?;
                }
                Message::Notification(notification) => self.take_in(notification)?,
                Message::Response(_) => {}
            }
        }
    }

    fn take_in(
        &mut self,
        notification: Notification,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        match notification.method.as_str() {
            DidOpenTextDocument::METHOD => {
                if let Some(opened) = read::<DidOpenTextDocument>(notification) {
                    let document = opened.text_document;
                    self.texts
                        .open(document.uri.clone(), document.text, document.version);
                    self.is_stale(document.uri);
                }
            }
            DidChangeTextDocument::METHOD => {
                if let Some(changed) = read::<DidChangeTextDocument>(notification) {
                    let document = changed.text_document;
                    let encoding = self.answerer.encoding;
                    self.texts.change(
                        &document.uri,
                        &changed.content_changes,
                        document.version,
                        encoding,
                    );
                    self.is_stale(document.uri);
                }
            }
            DidSaveTextDocument::METHOD => {
                // The configuration may be what was saved.
                if let Some(saved) = read::<DidSaveTextDocument>(notification) {
                    self.is_stale(saved.text_document.uri);
                }
            }
            DidCloseTextDocument::METHOD => {
                if let Some(closed) = read::<DidCloseTextDocument>(notification) {
                    let uri = closed.text_document.uri;
                    self.texts.close(&uri);
                    self.stale.retain(|other| *other != uri);
                    self.publish(PublishDiagnosticsParams::new(uri, Vec::new(), None))?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn is_stale(&mut self, uri: Uri) {
        if !self.stale.contains(&uri) {
            self.stale.push(uri);
        }
    }

    /// Tells the editor what is found in a text now.
    fn tell(&self, uri: Uri) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if let Some(text) = self.texts.get(&uri) {
            let diagnostics = self.answerer.diagnostics(&uri, text);
            self.publish(PublishDiagnosticsParams::new(
                uri,
                diagnostics,
                Some(text.version),
            ))?;
        }
        Ok(())
    }

    fn publish(
        &self,
        parameters: PublishDiagnosticsParams,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let method = PublishDiagnostics::METHOD.to_owned();
        let message = Notification::new(method, parameters);
        Ok(self.connection.sender.send(message.into())?)
    }

    fn answer(&self, request: Request) -> Response {
        if request.method != CodeActionRequest::METHOD {
            let message = format!("`{}` is not served", request.method);
            return Response::new_err(request.id, ErrorCode::MethodNotFound as i32, message);
        }
        match serde_json::from_value(request.params) {
            Ok(asked) => Response::new_ok(request.id, self.answerer.actions(asked, &self.texts)),
            Err(error) => Response::new_err(
                request.id,
                ErrorCode::InvalidParams as i32,
                error.to_string(),
            ),
        }
    }
}

/// What a notification says; None when it is not what its name promises.
fn read<N>(notification: Notification) -> Option<N::Params>
where
    N: lsp_types::notification::Notification,
    N::Params: DeserializeOwned,
{
    serde_json::from_value(notification.params).ok()
}
