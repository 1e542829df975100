//! Singer difference sets (J. Singer 1938): the lines of the projective plane of order q as the
//! translates of one set of q + 1 numbers.
//!
//! The points of the plane are the non-zero elements of GF(q³), up to factors in GF(q). They are
//! the powers 1, x, x²... of an element x whose powers run through all q² + q + 1 of them. A line
//! is a plane of GF(q³) over GF(q), and multiplication by x maps it to another line. So the
//! exponents of one line's points form a set D such that D + i, modulo q² + q + 1, is a line for
//! every i, and two lines intersect in exactly one point. (Trace zero is one choice of the first
//! line. Here it is the elements without a term in x²: this needs no trace, and contains 1 = x⁰.)

/// The smallest prime power q with q² + q + 1 >= `points`.
pub(super) fn order_of_plane(points: usize) -> u32 {
    (2..)
        .find(|&q| plane_points(q) >= points && prime_of_power(q).is_some())
        .expect("there is no largest prime power")
}

/// Number of points of a projective plane of order `q`.
pub(super) fn plane_points(q: u32) -> usize {
    let q = q as usize;
    q * q + q + 1
}

/// The prime that `q` is a power of, or `None` if `q` is not a prime power.
pub(super) fn prime_of_power(q: u32) -> Option<u32> {
    let prime = *prime_factors(q).first()?;
    let mut rest = q;
    while rest.is_multiple_of(prime) {
        rest /= prime;
    }
    (rest == 1).then_some(prime)
}

/// The exponents of the points of one line of the plane of order `q`, ascending from 0.
///
/// # Panics
/// If `q` is not a prime power.
pub(super) fn difference_set(q: u32) -> Vec<u32> {
    let field = Field::new(q);
    let extension = Extension::new(&field);
    let mut line = Vec::with_capacity(q as usize + 1);
    let mut power = extension.one();
    for exponent in 0..plane_points(q) as u32 {
        if power[2] == field.zero() {
            line.push(exponent);
        }
        power = extension.times_x(power);
    }
    assert_eq!(line.len(), q as usize + 1, "a line has q + 1 points");
    line
}

/// The distinct prime factors of `number`, ascending.
fn prime_factors(number: u32) -> Vec<u32> {
    let mut factors = Vec::new();
    let mut rest = number;
    let mut divisor = 2;
    while divisor * divisor <= rest {
        if rest.is_multiple_of(divisor) {
            factors.push(divisor);
            while rest.is_multiple_of(divisor) {
                rest /= divisor;
            }
        }
        divisor += 1;
    }
    if rest > 1 {
        factors.push(rest);
    }
    factors
}

/// The finite field GF(q), q = p^m. An element is represented by its exponent of a generator g,
/// from 0 to q - 2; q - 1 represents zero. Multiplication is then an addition, and addition takes
/// one lookup in Zech's table.
struct Field {
    q: u32,
    /// For each n: the exponent of 1 + gⁿ.
    zech: Vec<u32>,
}

impl Field {
    fn new(q: u32) -> Self {
        let p = prime_of_power(q).expect("a field's order is a prime power");
        let powers = powers_of_generator(p, q);
        let mut exponents = vec![0; q as usize];
        exponents[0] = q - 1;
        for (exponent, &element) in (0..).zip(&powers) {
            exponents[element as usize] = exponent;
        }
        let one_more = |element: u32| match element % p {
            last if last == p - 1 => element - last,
            _ => element + 1,
        };
        let zech = powers
            .iter()
            .map(|&element| exponents[one_more(element) as usize])
            .collect();
        Field { q, zech }
    }

    fn zero(&self) -> u32 {
        self.q - 1
    }

    fn elements(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.q
    }

    fn product(&self, a: u32, b: u32) -> u32 {
        if a == self.zero() || b == self.zero() {
            return self.zero();
        }
        let sum = a + b;
        if sum >= self.q - 1 {
            sum - (self.q - 1)
        } else {
            sum
        }
    }

    /// gᵃ + gᵇ = gᵃ (1 + gᵇ⁻ᵃ).
    fn sum(&self, a: u32, b: u32) -> u32 {
        if a == self.zero() {
            return b;
        }
        if b == self.zero() {
            return a;
        }
        let ratio = if b >= a { b - a } else { b + (self.q - 1) - a };
        self.product(a, self.zech[ratio as usize])
    }
}

/// The powers of a generator of GF(q), q = p^m, from the zeroth to the last before it returns to 1.
/// Elements are polynomials over GF(p), with their coefficients as the digits of a number in base
/// p. The generator is the polynomial x, modulo the first polynomial of degree m for which x is a
/// generator.
fn powers_of_generator(p: u32, q: u32) -> Vec<u32> {
    let highest = q / p;
    let mut powers = Vec::with_capacity(q as usize - 1);
    // x^m = `reduction`, a polynomial of lower degree.
    for reduction in 1..q {
        powers.clear();
        let mut power = 1;
        loop {
            powers.push(power);
            let (head, tail) = (power / highest, power % highest);
            power = add_multiple(tail * p, head, reduction, p);
            // Modulo a polynomial that x divides, the powers never return to 1 but enter another
            // cycle.
            if power == 1 || powers.len() as u32 == q - 1 {
                break;
            }
        }
        if power == 1 && powers.len() as u32 == q - 1 {
            return powers;
        }
    }
    unreachable!("every finite field has a generator");
}

/// a + factor · b, digit by digit in base p.
fn add_multiple(a: u32, factor: u32, b: u32, p: u32) -> u32 {
    let (mut a, mut b) = (a, b);
    let (mut result, mut place) = (0, 1);
    while a > 0 || b > 0 {
        result += (a % p + factor * (b % p)) % p * place;
        place *= p;
        a /= p;
        b /= p;
    }
    result
}

/// GF(q³): polynomials over GF(q) of degree below 3, lowest coefficient first, modulo a cubic for
/// which the powers of x run through all points of the plane.
struct Extension<'a> {
    field: &'a Field,
    /// x³ as a polynomial of lower degree.
    reduction: [u32; 3],
}

impl<'a> Extension<'a> {
    fn new(field: &'a Field) -> Self {
        let points = plane_points(field.q) as u32;
        let factors = prime_factors(points);
        let cubics = field.elements().flat_map(|square| {
            let linears = field.elements();
            linears.flat_map(move |linear| {
                let constants = field.elements();
                constants.map(move |constant| [constant, linear, square])
            })
        });
        cubics
            .map(|reduction| Extension { field, reduction })
            .find(|extension| extension.x_visits_all(points, &factors))
            .expect("every finite field has a cubic extension with a generator")
    }

    /// Whether x returns to GF(q) after exactly `points` powers. (Then the cubic is irreducible:
    /// modulo a reducible one, no element has order q² + q + 1 up to factors in GF(q).)
    fn x_visits_all(&self, points: u32, factors: &[u32]) -> bool {
        let is_first_point = |exponent| {
            let [_, linear, square] = self.power_of_x(exponent);
            linear == self.field.zero() && square == self.field.zero()
        };
        is_first_point(points)
            && self.power_of_x(points)[0] != self.field.zero()
            && factors.iter().all(|f| !is_first_point(points / f))
    }

    fn one(&self) -> [u32; 3] {
        [0, self.field.zero(), self.field.zero()]
    }

    fn times_x(&self, [constant, linear, square]: [u32; 3]) -> [u32; 3] {
        let overflow = self.reduction.map(|c| self.field.product(square, c));
        [
            overflow[0],
            self.field.sum(constant, overflow[1]),
            self.field.sum(linear, overflow[2]),
        ]
    }

    fn power_of_x(&self, exponent: u32) -> [u32; 3] {
        let mut result = self.one();
        for bit in (0..32 - exponent.leading_zeros()).rev() {
            result = self.product(result, result);
            if exponent >> bit & 1 == 1 {
                result = self.times_x(result);
            }
        }
        result
    }

    /// a·b by Horner's rule in x.
    fn product(&self, a: [u32; 3], b: [u32; 3]) -> [u32; 3] {
        let mut result = [self.field.zero(); 3];
        for coefficient in a.into_iter().rev() {
            result = self.times_x(result);
            for (sum, factor) in result.iter_mut().zip(b) {
                *sum = self
                    .field
                    .sum(*sum, self.field.product(coefficient, factor));
            }
        }
        result
    }
}
