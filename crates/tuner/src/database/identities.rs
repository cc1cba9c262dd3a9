//! Names as the numbers that stand for them in the tables.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use weft_device::{OperatorKey, Platform};

use super::error::Fault;
use super::record::TaskKey;

/// The columns of a task, in the order in which [`task`] reads them; before `FROM` and a table called `this`.
pub(super) const TASK_COLUMNS: &str =
    "chip, driver, kernels, operators.operator, precision, this.partition_size";

/// Brings the names in; a row whose names are missing stays, and is found to be damaged.
pub(super) const TASK_JOINS: &str = "LEFT JOIN platforms ON platforms.id = this.platform LEFT JOIN operators ON operators.id = this.operator";

/// How many columns a task takes.
pub(super) const TASK_WIDTH: usize = 6;

/// A task, from the first columns of a row.
pub(super) fn task(row: &Row<'_>) -> Result<TaskKey, Fault> {
    let platform = Platform { chip: row.get(0)?, driver: row.get(1)?, kernels: row.get(2)? };
    let operator = OperatorKey { operator: row.get(3)?, precision: row.get(4)? };
    Ok(TaskKey { platform, operator, partition_size: row.get(5)? })
}

/// The number of a platform, where there is anything about it.
pub(super) fn platform(connection: &Connection, platform: &Platform) -> Result<Option<i64>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT id FROM platforms WHERE chip = ? AND driver = ? AND kernels = ?")?;
    let Platform { chip, driver, kernels } = platform;
    Ok(statement.query_row(params![chip, driver, kernels], |row| row.get(0)).optional()?)
}

fn operator(connection: &Connection, operator: &OperatorKey) -> Result<Option<i64>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT id FROM operators WHERE operator = ? AND precision = ?")?;
    let OperatorKey { operator, precision } = operator;
    Ok(statement.query_row(params![operator, precision], |row| row.get(0)).optional()?)
}

/// The numbers of a task's platform and operator, where there is anything about both.
pub(super) fn known(connection: &Connection, task: &TaskKey) -> Result<Option<(i64, i64)>, Fault> {
    let Some(platform) = platform(connection, &task.platform)? else { return Ok(None) };
    Ok(operator(connection, &task.operator)?.map(|operator| (platform, operator)))
}

/// The number of a platform, which gets one now where it has none.
pub(super) fn assured_platform(
    transaction: &Transaction<'_>,
    named: &Platform,
) -> Result<i64, Fault> {
    if let Some(number) = platform(transaction, named)? {
        return Ok(number);
    }
    let Platform { chip, driver, kernels } = named;
    let mut statement = transaction
        .prepare_cached("INSERT INTO platforms (chip, driver, kernels) VALUES (?, ?, ?)")?;
    Ok(statement.insert(params![chip, driver, kernels])?)
}

/// The numbers of a task's platform and operator, which get one now where they have none.
pub(super) fn assured(transaction: &Transaction<'_>, task: &TaskKey) -> Result<(i64, i64), Fault> {
    let platform = assured_platform(transaction, &task.platform)?;
    let operator = match operator(transaction, &task.operator)? {
        Some(number) => number,
        None => {
            let OperatorKey { operator, precision } = &task.operator;
            transaction
                .prepare_cached("INSERT INTO operators (operator, precision) VALUES (?, ?)")?
                .insert(params![operator, precision])?
        }
    };
    Ok((platform, operator))
}
