//! Redacts a report that is shared: tokens and keys, passwords in URLs, names of people and of the machine. What remains
//! is enough to explain why a run ended.

use crate::run::facts::Facts;
use antifreeze_text::sanitize;
use regex::{Captures, Regex};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

const REMOVED: &str = "[removed]";

/// Words in the name of an argument or variable that has a secret value.
const SECRET_NAMES: &str = "(?i:key|token|secret|passwd|password|passphrase|pwd|pw|credentials?|signature|sig|cookie|auth|authorization)";

/// The beginning of the line before a private key.
const KEY_BEGINS: &str = "-----BEGIN ";
/// The beginning of the line after a private key.
const KEY_ENDS: &str = "-----END ";

/// Removes secrets from text.
pub struct Redactor {
    /// Patterns and their replacements.
    patterns: Vec<(Regex, &'static str)>,
    /// Folders and names with their replacements, longest first.
    names: Vec<(String, &'static str)>,
    is_secret_name: Regex,
}

impl Redactor {
    /// A redactor that also replaces the home folder, the user's name and the machine's name.
    pub fn new(home: Option<&str>, user: Option<&str>, machine: Option<&str>) -> Option<Redactor> {
        let patterns = [
            (
                r"((?:[Bb]earer|[Bb]asic)[ \t]+)[0-9A-Za-z._~+/=-]{8,}".into(),
                "${1}[removed]",
            ),
            // A header whose value has quotes of its own.
            (
                r#"((?i:authorization)["']?[ \t]*[=:][ \t]*["']?(?i:digest|hawk|oauth)[ \t]).*"#.into(),
                "${1}[removed]",
            ),
            // Headers: whatever their form is, to the end of them.
            (
                r#"((?i:authorization|cookie)["']?[ \t]*[=:][ \t]*["']?)[^"']+"#.into(),
                "${1}[removed]",
            ),
            // password: two words
            (
                r#"((?i:passwd|password|passphrase):[ \t]*)[^ \t"',;&\[][^"',;&\[]*"#.into(),
                "${1}[removed]",
            ),
            // {"api_key": "VALUE, with anything"}, also where the quotes are escaped, and lists of such values
            (
                format!(r#"([0-9A-Za-z_-]*{SECRET_NAMES}\\*["'][ \t]*[=:][ \t]*\\*["'])[^"']*?(\\*["'])"#),
                "${1}[removed]${2}",
            ),
            (
                format!(r#"([0-9A-Za-z_-]*{SECRET_NAMES}\\*["'][ \t]*:[ \t]*\[)[^\]]*"#),
                "${1}[removed]",
            ),
            (
                format!(r#"([0-9A-Za-z_-]*{SECRET_NAMES}\\*["'][ \t]*:[ \t]*\{{)[^}}]*"#),
                "${1}[removed]",
            ),
            // API_KEY: str = VALUE
            (
                format!(r#"([0-9A-Za-z_-]*{SECRET_NAMES}:[ \t]*[A-Za-z\[\]]+[ \t]*=[ \t]*["']?)[^ \t"',;&\[=]+"#),
                "${1}[removed]",
            ),
            // --token VALUE, --api-key=VALUE, "password": "VALUE", WANDB_API_KEY=VALUE, token%3DVALUE
            (
                format!(
                    r#"([0-9A-Za-z_-]*{SECRET_NAMES}["']?[ \t]*(?:[=:]|[-=]>|%3[Dd])[ \t]*["']?)[^ \t"',;&\[{{>]+"#
                ),
                "${1}[removed]",
            ),
            // DB_PASS=VALUE, --pass VALUE: as a word of its own it is the pass of a training
            (
                r#"((?:(?-u:\b)[0-9A-Z_]*_PASS["']?[ \t]*[=:][ \t]*["']?|--pass[ \t=]+))[^ \t"',;&\[]+"#.into(),
                "${1}[removed]",
            ),
            // WANDB_API_KEY VALUE: words that may be anything, so the value has to look like one
            (
                r"((?-u:\b)[0-9A-Z_]*(?:API_KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD)[ \t]+)[A-Za-z_.-]*[0-9][0-9A-Za-z_./+=-]{11,}".into(),
                "${1}[removed]",
            ),
            // huggingface_hub.login("VALUE")
            (
                r#"((?-u:\b)login\([ \t]*["'])[^"']+"#.into(),
                "${1}[removed]",
            ),
            (
                format!(r"(--?[0-9A-Za-z_-]*{SECRET_NAMES}[ \t]+)[^ \t\[-][^ \t]*"),
                "${1}[removed]",
            ),
            // user:password@ or token@ in an address, and as curl is given it
            (
                r"([0-9A-Za-z+]+://)(?:[^/ \t@]+|[^/: \t@]*:[^ \t@]+)@".into(),
                "${1}[removed]@",
            ),
            (
                r"((?i:login)[ \t]+[^ \t]+[ \t]+(?i:password)[ \t]+)[^ \t]+".into(),
                "${1}[removed]",
            ),
            // wandb login VALUE
            (
                r"((?-u:\b)login[ \t]+(?:-[^ \t]+[ \t]+)*)[0-9A-Za-z_.-]{20,}".into(),
                "${1}[removed]",
            ),
            (
                r"((?-u:\b)(?:sshpass|mysql[a-z]*|mariadb|docker[ \t]+login).*?[ \t]-p[ \t]*)[^ \t]+".into(),
                "${1}[removed]",
            ),
            (
                r"((?-u:\b)(?:ssh|scp|sftp|rsync)[ \t](?:.*?[ \t])?)[0-9A-Za-z._+-]+@".into(),
                "${1}someone@",
            ),
            (
                r"((?:^|[ \t])(?:-u|--user)[ \t=]+)[^ \t:]+:[^ \t]+".into(),
                "${1}[removed]",
            ),
            (
                r"((?i:password|passphrase|token|key|secret)[ \t]+is:?[ \t]+)[0-9A-Za-z._~+/=-]*[0-9][^ \t]*".into(),
                "${1}[removed]",
            ),
            // By their own form: Hugging Face, GitHub, GitLab, OpenAI and its like, Groq, Replicate, Slack, AWS, Google,
            // Telegram, Discord, SendGrid, Twilio, Weights & Biases, Stripe, DigitalOcean, Databricks, Mailgun, Notion,
            // Linear, Pinecone, LangSmith, Perplexity, xAI, Together, Fireworks, Vault, age, RunPod, Anyscale, Shopify, JWT, JSON in base64 (Neptune), and addresses that are
            // secrets themselves.
            (
                r"(?:hf_[0-9A-Za-z]{16,}|gh[pousr]_[0-9A-Za-z]{16,}|github_pat_[0-9A-Za-z_]{16,}|gl[a-z]{2,6}-[0-9A-Za-z_-]{16,}|sk-[0-9A-Za-z_-]{16,}|xox[abeprs][.-][0-9A-Za-z.-]{8,}|xapp-[0-9A-Za-z-]{8,}|npm_[0-9A-Za-z]{16,}|pypi-[0-9A-Za-z_-]{16,}|dckr_pat_[0-9A-Za-z_-]{16,}|nvapi-[0-9A-Za-z_-]{16,}|ya29\.[0-9A-Za-z_.-]{16,}|A[KS]IA[0-9A-Z]{12,}|gsk_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/=]{16,}|do[opr]_v1_[0-9A-Za-z]{16,}|dapi[0-9a-f]{32}|key-[0-9A-Za-z]{32}|secret_[0-9A-Za-z]{40,}|ntn_[0-9A-Za-z]{16,}|lin_api_[0-9A-Za-z]{16,}|pcsk_[0-9A-Za-z_]{16,}|lsv2_[a-z]{2}_[0-9A-Za-z_]{16,}|pplx-[0-9A-Za-z]{16,}|xai-[0-9A-Za-z]{16,}|tgp_v1_[0-9A-Za-z_-]{16,}|fw_[0-9A-Za-z]{20,}|hv[bs]\.[0-9A-Za-z_-]{16,}|AGE-SECRET-KEY-1[0-9A-Z]{16,}|rpa_[0-9A-Z]{16,}|api_org_[0-9A-Za-z]{16,}|esecret_[0-9A-Za-z]{16,}|shp[a-z]{2}_[0-9a-f]{16,}|r8_[0-9A-Za-z]{16,}|[rs]k_(?:live|test)_[0-9A-Za-z]{8,}|(?:bot)?[0-9]{6,}:[0-9A-Za-z_-]{30,}|[MNO][0-9A-Za-z_-]{22,30}\.[0-9A-Za-z_-]{6}\.[0-9A-Za-z_-]{27,45}|SG\.[0-9A-Za-z_-]{16,}\.[0-9A-Za-z_-]{16,}|(?-u:\b)(?:SK|AC)[0-9a-f]{32}(?-u:\b)|wandb_v[0-9]+_[0-9A-Za-z_]{16,}|AIza[0-9A-Za-z_-]{30,}|eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*|eyJ[0-9A-Za-z+/_-]{40,}=*)".into(),
                REMOVED,
            ),
            (
                r#"((?:hooks\.slack\.com/(?:services|workflows)|discord(?:app)?\.com/api/webhooks|hooks\.zapier\.com/hooks/catch|office\.com/webhook(?:b2)?|ntfy\.sh|hc-ping\.com)/)[^ \t"']+"#.into(),
                "${1}[removed]",
            ),
            (
                format!(r"({KEY_BEGINS}[0-9A-Z ]*KEY-----).*?{KEY_ENDS}[0-9A-Z ]*-----"),
                "${1}[removed]",
            ),
            // Other people's folders, and addresses.
            (r#"(/(?:home|Users|users)/)[^/ \t:"']+"#.into(), "${1}someone"),
            (r#"([A-Za-z]:\\{1,2}Users\\{1,2})[^\\ \t:"']+"#.into(), "${1}someone"),
            (
                r"[0-9A-Za-z._+-]+@[0-9A-Za-z-]+\.[0-9A-Za-z.-]*[0-9A-Za-z]".into(),
                "someone@example.org",
            ),
        ];
        let patterns: Option<Vec<(Regex, &str)>> = patterns
            .into_iter()
            .map(|(pattern, by)| Some((Regex::new(&pattern).ok()?, by)))
            .collect();
        let long_enough = |name: &&str| name.len() >= 3;
        let names = [(home, "~"), (machine, "this-machine"), (user, "someone")];
        Some(Redactor {
            patterns: patterns?,
            names: names
                .into_iter()
                .filter_map(|(name, by)| Some((name.filter(long_enough)?.to_owned(), by)))
                .collect(),
            is_secret_name: Regex::new(&format!("(?:{SECRET_NAMES}|[-_]pass)$")).ok()?,
        })
    }

    /// Redacts a text.
    pub fn redact(&self, text: &str) -> String {
        let mut redacted = text.to_owned();
        for (name, by) in &self.names {
            redacted = replace_word(&redacted, name, by);
        }
        for (pattern, by) in &self.patterns {
            let replaced = pattern.replace_all(&redacted, |found: &Captures<'_>| {
                let mut text = String::new();
                found.expand(by, &mut text);
                text
            });
            redacted = replaced.into_owned();
        }
        redacted
    }

    /// Redacts a command, in which a secret may be the argument after its name.
    fn redact_command(&self, pieces: &[OsString]) -> Vec<OsString> {
        let (mut is_value, mut follows_login) = (false, false);
        let redact = |piece: &OsString| {
            let text = piece.to_string_lossy();
            let is_flag = text.starts_with('-');
            // wandb login [FLAGS] VALUE
            let is_secret = !is_flag && (is_value || follows_login);
            is_value = is_flag && !text.contains('=') && self.is_secret_name.is_match(&text);
            follows_login = text == "login" || follows_login && is_flag;
            match is_secret {
                true => REMOVED.into(),
                false => self.redact(&text).into(),
            }
        };
        pieces.iter().map(redact).collect()
    }

    /// Redacts output line by line, as it is visible: a colour code in the middle of a token hides nothing.
    fn redact_lines(&self, output: &[u8]) -> Vec<u8> {
        let mut is_key = false;
        let redact = |line: String| {
            let was_key = is_key;
            let begins = line
                .rfind(KEY_BEGINS)
                .filter(|at| line.get(*at..).is_some_and(|key| key.contains("KEY-----")));
            // The rest of a line that begins another key is dropped.
            is_key = match (line.rfind(KEY_ENDS), begins) {
                (Some(ends), Some(begins)) => begins > ends,
                (Some(_), None) => false,
                (None, begins) => was_key || begins.is_some(),
            };
            match (was_key, begins.filter(|_| is_key)) {
                (true, _) => format!("{REMOVED}\n"),
                (false, Some(at)) => {
                    self.redact(line.get(..at).unwrap_or_default()) + KEY_BEGINS + REMOVED + "\n"
                }
                (false, None) => self.redact(&line) + "\n",
            }
        };
        sanitize::visible_lines(output)
            .map(redact)
            .collect::<String>()
            .into_bytes()
    }

    fn redact_path(&self, path: &Path) -> PathBuf {
        self.redact(&path.to_string_lossy()).into()
    }

    /// Redacts the facts of a run.
    pub fn redact_facts(&self, facts: &Facts) -> Facts {
        let mut redacted = facts.clone();
        redacted.record = self.redact_path(&facts.record);
        redacted.folder = self.redact_path(&facts.folder);
        redacted.command = self.redact_command(&facts.command);
        redacted.mount = facts.mount.as_deref().map(|mount| self.redact(mount));
        redacted.last_output = self.redact_lines(&facts.last_output);
        redacted.stacks = facts.stacks.map_text(|text| self.redact(text));
        for checkpoint in &mut redacted.checkpoints {
            checkpoint.path = self.redact_path(&checkpoint.path);
        }
        redacted.shim.each_text(|text| *text = self.redact(text));
        for incident in &mut redacted.log.incidents {
            incident.line.text = self.redact(&incident.line.text);
        }
        for place in redacted
            .log
            .read
            .iter_mut()
            .chain(&mut redacted.log.missing)
        {
            *place = self.redact(place);
        }
        redacted
    }
}

/// Replaces a name where it is not part of another word.
fn replace_word(text: &str, name: &str, by: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(name) {
        let (before, after) = (rest.get(..at), rest.get(at + name.len()..));
        let (Some(before), Some(after)) = (before, after) else {
            break;
        };
        let is_part = |character: Option<char>| character.is_some_and(char::is_alphanumeric);
        let is_word = !is_part(before.chars().next_back()) && !is_part(after.chars().next());
        replaced.push_str(before);
        replaced.push_str(if is_word { by } else { name });
        rest = after;
    }
    replaced.push_str(rest);
    replaced
}

/// The name of this machine.
pub fn machine_name() -> Option<String> {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy().into_owned();
    (!name.is_empty() && name != "localhost").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Log;
    use crate::run::checkpoints::{Checkpoint, Kind};
    use crate::run::stacks::Stacks;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// Made once, since compiling the patterns takes long.
    fn redactor() -> &'static Redactor {
        static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
            Redactor::new(Some("/home/ada"), Some("ada"), Some("babbage")).unwrap()
        });
        &REDACTOR
    }

    #[test]
    fn secrets_are_removed_and_the_rest_stays() {
        for (text, expected) in [
            ("--token abc123 --epochs 3", "--token [removed] --epochs 3"),
            ("--hf-api-key=abc123 -x", "--hf-api-key=[removed] -x"),
            (
                "WANDB_API_KEY=0123abcd python",
                "WANDB_API_KEY=[removed] python",
            ),
            (
                r#"{"password": "hunter2", "lr": 0.1}"#,
                r#"{"password": "[removed]", "lr": 0.1}"#,
            ),
            (
                "git clone https://me:pass@host/x.git",
                "git clone https://[removed]@host/x.git",
            ),
            (
                "Authorization: Bearer abcdefgh1234",
                "Authorization: [removed]",
            ),
            (
                "-H 'Authorization: token s3cret' -H 'cookie: a=s3cret; b=s3cret' host",
                "-H 'Authorization: [removed]' -H 'cookie: [removed]' host",
            ),
            (
                "{'Authorization': 'Token s3cret', 'x': 1}",
                "{'Authorization': '[removed]', 'x': 1}",
            ),
            ("authorization=Digest s3cret", "authorization=[removed]"),
            ("password: s3cret s3cret", "password: [removed]"),
            (
                "machine x.org login me password s3cret",
                "machine x.org login me password [removed]",
            ),
            ("postgres://u:s3/cret@db/x", "postgres://[removed]@db/x"),
            (
                "wandb: login key is 0123456789abcdef",
                "wandb: login key is [removed]",
            ),
            ("ASIAABCDEFGHIJKLMNOP", "[removed]"),
            (
                "gsk_ABCDEFGHIJKLMNOPQRST r8_ABCDEFGHIJKLMNOPQRST",
                "[removed] [removed]",
            ),
            (
                "https://hooks.slack.com/services/T0/B0/s3cret now",
                "https://hooks.slack.com/services/[removed] now",
            ),
            (
                r"k = '-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----' # mine",
                "k = '-----BEGIN PRIVATE KEY-----[removed]' # mine",
            ),
            (
                "sshpass -p s3cret ssh bob@host",
                "sshpass -p [removed] ssh someone@host",
            ),
            ("mysql -ps3cret db", "mysql -p[removed] db"),
            (
                "login with hf_ABCDEFGHIJKLMNOPQRST now",
                "login with [removed] now",
            ),
            (
                "git clone https://s3cret@host/x.git",
                "git clone https://[removed]@host/x.git",
            ),
            ("redis://:s3cret@host:1/0", "redis://[removed]@host:1/0"),
            ("curl -u me:s3cret host", "curl -u [removed] host"),
            (
                "pwd=s3cret; the password is s3cret",
                "pwd=[removed]; the password is [removed]",
            ),
            (
                "GET /x?sig=s3cret&X-Amz-Signature=s3cret",
                "GET /x?sig=[removed]&X-Amz-Signature=[removed]",
            ),
            ("npm_ABCDEFGHIJKLMNOPQRST", "[removed]"),
            (r"C:\Users\Bob\net", r"C:\Users\someone\net"),
            ("/home/ada/net/train.py", "~/net/train.py"),
            ("/home/bob/net/train.py", "/home/someone/net/train.py"),
            ("ada@babbage:~$ adam", "someone@this-machine:~$ adam"),
            ("mail ada.l@example.com", "mail someone@example.org"),
            (
                "wandb login --relogin 0123456789abcdef0123456789abcdef01234567",
                "wandb login --relogin [removed]",
            ),
            (
                "chat 123456789:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc ok",
                "chat [removed] ok",
            ),
            (
                "client.run(MTA0NTg3NjU0MzIxMDk4NzY1NA.GaBcDe.abcdefghijklmnopqrstuvwxyz0123456789AB)",
                "client.run([removed])",
            ),
            (
                "SG.abcdefghijklmnopqrstuv.ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789abcdefg",
                "[removed]",
            ),
            (
                "Client(AC0123456789abcdef0123456789abcdef, SK0123456789abcdef0123456789abcdef)",
                "Client([removed], [removed])",
            ),
            (
                "init eyJhcGlfYWRkcmVzcyI6Imh0dHBzOi8vYXBwLm5lcHR1bmUuYWkiLCJhcGlfdXJsIjoiaHR0cHM6Ly8ifQ== done",
                "init [removed] done",
            ),
            (
                r#"--config {"api_key": "s3, cret", "lr": 0.1}"#,
                r#"--config {"api_key": "[removed]", "lr": 0.1}"#,
            ),
            (
                r#"{\"token\": \"s3cret s3cret\", \"lr\": 0.1}"#,
                r#"{\"token\": \"[removed]\", \"lr\": 0.1}"#,
            ),
            (
                r#"{"token": ["s3cret", "s3cret"], "lr": 0.1}"#,
                r#"{"token": [[removed]], "lr": 0.1}"#,
            ),
            (
                r#"{"credentials": {"user": "s3cret"}, "lr": 0.1}"#,
                r#"{"credentials": {[removed]}, "lr": 0.1}"#,
            ),
            (
                "proxy-authorization: Digest username=\"x\", response=\"s3cret\"",
                "proxy-authorization: [removed]",
            ),
            (
                "DB_PASS=s3cret --pass s3cret",
                "DB_PASS=[removed] --pass [removed]",
            ),
            ("WANDB_API_KEY -> s3cret", "WANDB_API_KEY -> [removed]"),
            (
                "the HF_TOKEN s3cret00000000000 is used",
                "the HF_TOKEN [removed] is used",
            ),
            ("callback%3Ftoken%3Ds3cret", "callback%3Ftoken%3D[removed]"),
            ("login('s3cret')", "login('[removed]')"),
            (
                "whsec_ABCDEFGHIJKLMNOPQRST dapi0123456789abcdef0123456789abcdef lsv2_pt_ABCDEFGHIJKLMNOPQRST",
                "[removed] [removed] [removed]",
            ),
            (
                "https://hooks.zapier.com/hooks/catch/1/s3cret now",
                "https://hooks.zapier.com/hooks/catch/[removed] now",
            ),
        ] {
            assert_eq!(redactor().redact(text), expected, "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB",
            "tokenizer = AutoTokenizer(…)  # 512 tokens a batch",
            "step 10 loss: 0.25 tokens/s: 1200",
            "File \"train.py\", line 7, in <module>",
            "forward pass: 0.2 s, backward pass: 0.4 s",
            "KeyError: 'label'",
            "the key is missing; the token is not valid",
            "y = x@w + b",
            "mkdir -p out; python -p 3",
            r#"{"max_tokens": 512, "tokenizer": "gpt2", "keys": ["a"]}"#,
            "login node: gpu-17",
            "checkpoint at 12:30:45, 100000:200000 of 300000",
            "see https://host.org/a:b/c",
            "HF_TOKEN is not set; OPENAI_API_KEY missing",
            "backward_pass: 0.4 s, second pass=3",
            "gl_context-0123456789abcdef key-value pairs",
            "nfs4 server:/data on /data",
        ] {
            assert_eq!(redactor().redact(text), text);
        }
    }

    #[test]
    fn a_command_loses_the_values_of_its_secrets() {
        let facts = Facts {
            command: [
                "python", "t.py", "--token", "s3cret", "--lr", "0.1", "--auth=x",
            ]
            .map(OsString::from)
            .to_vec(),
            folder: "/home/ada/net".into(),
            last_output: b"key=\x1b[31mabc\x1b[0m api_key: abc\n".to_vec(),
            ..Facts::default()
        };
        let redacted = redactor().redact_facts(&facts);
        assert_eq!(
            redacted.command_line(),
            "python t.py --token '[removed]' --lr 0.1 '--auth=[removed]'"
        );
        let login = ["wandb", "login", "--verify", "s3cret", "t.py"].map(OsString::from);
        assert_eq!(
            redactor().redact_command(&login),
            ["wandb", "login", "--verify", "[removed]", "t.py"]
        );
        assert_eq!(redacted.folder, PathBuf::from("~/net"));
        assert!(
            !String::from_utf8(redacted.last_output)
                .unwrap()
                .contains("api_key: abc")
        );
    }

    #[test]
    fn no_part_of_a_run_keeps_secrets() {
        let facts = Facts {
            mount: Some("nfs4 server:/home/ada on /home/ada".into()),
            last_output: b"-----BEGIN RSA PRIVATE KEY-----\nMIIEow\n-----END RSA PRIVATE KEY-----\nwell\n".to_vec(),
            stacks: Stacks::parse(
                7,
                b"Current thread 0x1 (most recent call first):\n  File \"/home/ada/net/train.py\", line 3 in step\n"
                    .repeat(3)
                    .as_slice(),
            ),
            checkpoints: vec![Checkpoint {
                kind: Kind::Script,
                step: 3,
                path: "/home/ada/last.pt".into(),
                bytes: None,
                written: std::time::SystemTime::UNIX_EPOCH,
            }],
            log: Log {
                missing: vec!["/home/ada/kern.log: permission denied".into()],
                ..Log::default()
            },
            ..Facts::default()
        };
        let redacted = redactor().redact_facts(&facts);
        let shown = format!("{redacted:?}");
        assert!(!shown.contains("ada"), "{shown}");
        assert_eq!(
            redacted.last_output,
            b"-----BEGIN [removed]\n[removed]\n[removed]\nwell\n\n"
        );
        let text = String::from_utf8(redacted.stacks.text.clone()).unwrap();
        assert!(text.contains("~/net/train.py\", line 3 in step"), "{text}");
        let standing = redacted.stacks.repeated_stack().unwrap();
        assert_eq!(standing[0].frame.file, b"~/net/train.py");
    }

    proptest! {
        #[test]
        fn any_text_is_redacted(text: String) {
            redactor().redact(&text);
        }
    }
}
