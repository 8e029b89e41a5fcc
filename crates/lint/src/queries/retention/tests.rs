use crate::rules::find;
use crate::target_machine::TargetMachine;
use crate::{Dialect, check_source};

/// Returns the statement that stores the loss, after its fix.
fn fixed(keeps: &str, after: &str) -> Option<String> {
    let text = format!(
        "import torch\n\ndef train(model, loader, criterion, losses, total):\n    for x, y in loader:\n        \
             loss = criterion(model(x), y)\n        loss.backward()\n        {keeps}\n    {after}\n"
    );
    let rules: Vec<_> = ["AF101", "AF102"].into_iter().filter_map(find).collect();
    let checked = check_source(&text, Dialect::Python, &TargetMachine::default(), &rules);
    let fix = checked.findings.first()?.fix.clone()?;
    let mut fixed = text.clone();
    for edit in fix.edits.iter().rev() {
        fixed.insert_str(edit.range.start().into(), &edit.content);
    }
    Some(fixed.lines().nth(6)?.trim().to_owned())
}

#[test]
fn a_number_is_kept_only_where_a_number_will_do() {
    for (keeps, after, wanted) in [
        ("total += loss", "print(total)", "total += loss.item()"),
        (
            "total += loss * x.size(0)",
            "print(total)",
            "total += (loss * x.size(0)).item()",
        ),
        // A tensor may be needed later, or is.
        ("total += loss", "return total", "total += loss.detach()"),
        (
            "total += loss",
            "print((total / 3).item())",
            "total += loss.detach()",
        ),
        (
            "total += loss * y",
            "print(total)",
            "total += (loss * y).detach()",
        ),
        (
            "losses.append(loss)",
            "print(sum(losses))",
            "losses.append(loss.item())",
        ),
        (
            "losses.append(loss)",
            "print(sum(losses).item())",
            "losses.append(loss.detach())",
        ),
        (
            "losses.append((x, loss))",
            "print(len(losses))",
            "losses.append((x, loss.detach()))",
        ),
    ] {
        assert_eq!(
            fixed(keeps, after).as_deref(),
            Some(wanted),
            "{keeps}; {after}"
        );
    }
}

#[test]
fn what_is_no_tensor_has_no_fix() {
    assert_eq!(
        fixed("losses.append({'loss': loss})", "print(len(losses))"),
        None
    );
}
