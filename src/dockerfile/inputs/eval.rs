//! Values of a bake file's expressions, as far as they need no functions. It grows no text beyond a bound and has
//! no loops; how deep an expression may be is bounded by its parser.

use std::collections::BTreeMap;

use hcl::expr::{
    BinaryOperator, Conditional, Expression, ObjectKey, Operation, Traversal, TraversalOperator, UnaryOperator,
};
use hcl::template::{Element, Template};
use hcl::{Number, Value as Hcl};

use super::super::expand::{MOST_TEXT, Work};
use super::super::value::Value;

/// Lists in lists of a value: variables may hold each other, so that the parser's bound does not do.
const MOST_NESTED: usize = 16;

/// The variables in force, and the work left.
#[derive(Debug, Clone, Copy)]
pub struct Variables<'a> {
    pub file: &'a BTreeMap<String, Hcl>,
    /// Of a matrix: they hide the file's.
    pub own: &'a BTreeMap<String, Hcl>,
    pub work: &'a Work,
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<Hcl> {
        let value = self.own.get(name).or_else(|| self.file.get(name))?;
        self.work.take(size(value, 0)?).then(|| value.clone())
    }
}

/// What an expression comes to; none where that is unknown.
pub fn eval(expression: &Expression, variables: Variables<'_>) -> Option<Hcl> {
    match expression {
        Expression::Null => Some(Hcl::Null),
        Expression::Bool(value) => Some(Hcl::Bool(*value)),
        Expression::Number(number) => Some(Hcl::Number(*number)),
        Expression::String(text) => Some(Hcl::String(text.clone())),
        Expression::Array(items) => {
            let mut room = MOST_TEXT;
            let items: Option<Vec<Hcl>> =
                items.iter().map(|item| fit(eval(item, variables)?, 0, &mut room)).collect();
            items.map(Hcl::Array)
        }
        Expression::Object(object) => {
            let mut room = MOST_TEXT;
            let items: Option<hcl::Map<String, Hcl>> = object
                .iter()
                .map(|(key, value)| {
                    let key = self::key(key, variables)?;
                    let value = fit(eval(value, variables)?, key.len(), &mut room)?;
                    Some((key, value))
                })
                .collect();
            items.map(Hcl::Object)
        }
        Expression::TemplateExpr(template) => {
            let template = Template::from_expr(template).ok()?;
            self::template(&template, variables).map(Hcl::String)
        }
        Expression::Variable(name) => variables.get(name.as_str()),
        Expression::Traversal(traversal) => traverse(traversal, variables),
        Expression::Parenthesis(inner) => eval(inner, variables),
        Expression::Conditional(conditional) => {
            let (arm, _) = arms(conditional, variables)?;
            eval(arm?, variables)
        }
        Expression::Operation(operation) => operate(operation, variables),
        _ => None,
    }
}

/// What an argument is given; none where it is given nothing.
pub fn value(expression: &Expression, variables: Variables<'_>) -> Option<Value> {
    if let Expression::Conditional(conditional) = expression
        && let Some((None, [yes, no])) = arms(conditional, variables)
    {
        let arm = |arm| value(arm, variables).unwrap_or_default();
        return Some(arm(yes).or(&arm(no)));
    }
    match eval(expression, variables) {
        Some(Hcl::Null) => None,
        Some(value) => Some(text(&value).map_or(Value::Unknown, Value::Known)),
        None => Some(Value::Unknown),
    }
}

/// A scalar as text.
pub fn text(value: &Hcl) -> Option<String> {
    match value {
        Hcl::String(text) => Some(text.clone()),
        Hcl::Bool(value) => Some(value.to_string()),
        Hcl::Number(number) => Some(match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) => float.to_string(),
            _ => number.to_string(),
        }),
        Hcl::Null | Hcl::Array(_) | Hcl::Object(_) => None,
    }
}

/// An object's key.
pub fn key(key: &ObjectKey, variables: Variables<'_>) -> Option<String> {
    match key {
        ObjectKey::Identifier(name) => Some(name.to_string()),
        ObjectKey::Expression(expression) => text(&eval(expression, variables)?),
        _ => None,
    }
}

/// The arm that is taken, where the condition is known; and both.
type Arms<'a> = (Option<&'a Expression>, [&'a Expression; 2]);

fn arms<'a>(conditional: &'a Conditional, variables: Variables<'_>) -> Option<Arms<'a>> {
    let both = [&conditional.true_expr, &conditional.false_expr];
    match eval(&conditional.cond_expr, variables) {
        Some(Hcl::Bool(true)) => Some((Some(&conditional.true_expr), both)),
        Some(Hcl::Bool(false)) => Some((Some(&conditional.false_expr), both)),
        // No condition.
        Some(_) => None,
        None => Some((None, both)),
    }
}

fn template(template: &Template, variables: Variables<'_>) -> Option<String> {
    let mut out = String::new();
    for element in template.elements() {
        match element {
            Element::Literal(literal) => out.push_str(literal),
            Element::Interpolation(inner) => out.push_str(&text(&eval(&inner.expr, variables)?)?),
            Element::Directive(_) => return None,
        }
        if out.len() > MOST_TEXT {
            return None;
        }
    }
    Some(out)
}

fn traverse(traversal: &Traversal, variables: Variables<'_>) -> Option<Hcl> {
    let mut value = eval(&traversal.expr, variables)?;
    for operator in &traversal.operators {
        value = match (operator, value) {
            (TraversalOperator::GetAttr(name), Hcl::Object(mut object)) => object.swap_remove(name.as_str())?,
            (TraversalOperator::Index(index), value) => match (value, eval(index, variables)?) {
                (Hcl::Object(mut object), Hcl::String(name)) => object.swap_remove(&name)?,
                (Hcl::Array(items), Hcl::Number(index)) => item(items, index.as_u64()?)?,
                _ => return None,
            },
            (TraversalOperator::LegacyIndex(index), Hcl::Array(items)) => item(items, *index)?,
            _ => return None,
        };
    }
    Some(value)
}

fn item(items: Vec<Hcl>, index: u64) -> Option<Hcl> {
    items.into_iter().nth(usize::try_from(index).ok()?)
}

fn operate(operation: &Operation, variables: Variables<'_>) -> Option<Hcl> {
    match operation {
        Operation::Unary(unary) => match (unary.operator, eval(&unary.expr, variables)?) {
            (UnaryOperator::Not, Hcl::Bool(value)) => Some(Hcl::Bool(!value)),
            _ => None,
        },
        Operation::Binary(binary) => {
            let left = eval(&binary.lhs_expr, variables)?;
            let right = eval(&binary.rhs_expr, variables)?;
            let compare = |order: fn(&f64, &f64) -> bool| match (&left, &right) {
                (Hcl::Number(a), Hcl::Number(b)) => Some(order(&a.as_f64()?, &b.as_f64()?)),
                _ => None,
            };
            let logic = |join: fn(bool, bool) -> bool| match (&left, &right) {
                (Hcl::Bool(a), Hcl::Bool(b)) => Some(join(*a, *b)),
                _ => None,
            };
            let result = match binary.operator {
                BinaryOperator::Eq => left == right,
                BinaryOperator::NotEq => left != right,
                BinaryOperator::And => logic(|a, b| a && b)?,
                BinaryOperator::Or => logic(|a, b| a || b)?,
                BinaryOperator::Less => compare(f64::lt)?,
                BinaryOperator::LessEq => compare(f64::le)?,
                BinaryOperator::Greater => compare(f64::gt)?,
                BinaryOperator::GreaterEq => compare(f64::ge)?,
                BinaryOperator::Plus => {
                    let (Hcl::Number(a), Hcl::Number(b)) = (&left, &right) else { return None };
                    let sum = a.as_i64()?.checked_add(b.as_i64()?)?;
                    return Some(Hcl::Number(Number::from(sum)));
                }
                _ => return None,
            };
            Some(Hcl::Bool(result))
        }
    }
}

/// A part of a value, where there is room for it.
fn fit(value: Hcl, more: usize, room: &mut usize) -> Option<Hcl> {
    *room = room.checked_sub(size(&value, 1)?.checked_add(more)?)?;
    Some(value)
}

/// The bytes of a value, about; none where it is nested too deeply.
fn size(value: &Hcl, depth: usize) -> Option<usize> {
    if depth > MOST_NESTED {
        return None;
    }
    match value {
        Hcl::String(text) => Some(text.len() + 1),
        Hcl::Array(items) => items.iter().try_fold(1, |all: usize, v| all.checked_add(size(v, depth + 1)?)),
        Hcl::Object(items) => items
            .iter()
            .try_fold(1, |all: usize, (k, v)| all.checked_add(k.len())?.checked_add(size(v, depth + 1)?)),
        Hcl::Null | Hcl::Bool(_) | Hcl::Number(_) => Some(1),
    }
}
