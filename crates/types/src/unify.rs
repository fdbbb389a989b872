//! Unification: the values of unknowns under which two terms are the same, as `torch.fx.experimental.unification` has it.

use rustc_hash::FxHashMap;

/// A term over atoms: what unknowns stand for.
///
/// ```
/// use tracefx_types::{Term, reify, unify};
/// let [x, y] = [Term::Var(0), Term::Var(1)];
/// let found = unify(
///     &Term::Seq(vec![x.clone(), Term::Seq(vec![y.clone(), Term::Atom(4)])]),
///     &Term::Seq(vec![Term::Atom(1), Term::Seq(vec![x.clone(), y.clone()])]),
/// );
/// assert_eq!(found, None);
/// let found = unify(&Term::Seq(vec![x.clone(), y.clone()]), &Term::Seq(vec![y.clone(), Term::Atom(2)])).unwrap();
/// assert_eq!(reify(&x, &found), Term::Atom(2));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term<A> {
    /// An unknown.
    Var(u32),
    /// Something that is equal to itself alone.
    Atom(A),
    /// Several terms.
    Seq(Vec<Term<A>>),
}

/// What unknowns stand for; the terms may have unknowns of their own.
pub type Substitution<A> = FxHashMap<u32, Term<A>>;

fn walk<'a, A>(mut term: &'a Term<A>, substitution: &'a Substitution<A>) -> &'a Term<A> {
    while let Term::Var(var) = term
        && let Some(next) = substitution.get(var)
    {
        term = next;
    }
    term
}

/// The most general substitution that makes two terms the same, if there is one.
pub fn unify<A: Clone + PartialEq>(a: &Term<A>, b: &Term<A>) -> Option<Substitution<A>> {
    let mut substitution = Substitution::default();
    unify_with(a, b, &mut substitution).then_some(substitution)
}

/// Extends a substitution so that it makes two terms the same; says whether that is possible. As in torch.fx, an unknown
/// may come to stand for a term that it is part of.
pub fn unify_with<A: Clone + PartialEq>(a: &Term<A>, b: &Term<A>, substitution: &mut Substitution<A>) -> bool {
    let mut open = vec![(a.clone(), b.clone())];
    while let Some((a, b)) = open.pop() {
        let (a, b) = (walk(&a, substitution).clone(), walk(&b, substitution).clone());
        match (a, b) {
            (a, b) if a == b => {}
            (Term::Var(var), other) | (other, Term::Var(var)) => {
                substitution.insert(var, other);
            }
            (Term::Seq(a), Term::Seq(b)) if a.len() == b.len() => open.extend(a.into_iter().zip(b).rev()),
            (Term::Atom(_) | Term::Seq(_), _) => return false,
        }
    }
    true
}

/// The term with its unknowns replaced by what they stand for.
pub fn reify<A: Clone>(term: &Term<A>, substitution: &Substitution<A>) -> Term<A> {
    match walk(term, substitution) {
        Term::Seq(items) => Term::Seq(items.iter().map(|it| reify(it, substitution)).collect()),
        it @ (Term::Var(_) | Term::Atom(_)) => it.clone(),
    }
}

/// Shortens the ways through a substitution: afterwards an unknown that stands for an unknown stands for the last one.
pub(crate) fn shorten<A: Clone>(substitution: &mut Substitution<A>) {
    let vars: Vec<u32> = substitution.keys().copied().collect();
    for var in vars {
        let mut way = Vec::new();
        let mut at = var;
        while let Some(Term::Var(next)) = substitution.get(&at) {
            way.push(at);
            at = *next;
        }
        // What follows the last unknown is its own affair.
        way.into_iter().for_each(|it| {
            substitution.insert(it, Term::Var(at));
        });
    }
}
