// Every function is in a line of its own, so that its line tells which function it is in any build.
#define NEVER __attribute__((noinline, noipa))
namespace shop {
template <typename T> struct Money {
  T cents;
  NEVER T total() const { return cents + 1; }
  template <typename U> NEVER T plus(U other) const { return cents + static_cast<T>(other); }
  NEVER bool operator==(const Money &other) const { return cents == other.cents; }
  NEVER bool operator!() const { return cents == 0; }
  NEVER T operator[](int at) const { return cents + at; }
  NEVER T operator()(int at) const { return cents - at; }
  NEVER Money &operator++() { cents++; return *this; }
  NEVER Money &operator+=(T more) { cents += more; return *this; }
};
template <typename T> NEVER Money<T> operator+(Money<T> a, Money<T> b) { return {static_cast<T>(a.cents + b.cents)}; }
template <typename T> NEVER Money<T> operator-(Money<T> a, Money<T> b) { return {static_cast<T>(a.cents - b.cents)}; }
template <typename T> NEVER Money<T> operator*(Money<T> a, T b) { return {static_cast<T>(a.cents * b)}; }
template <typename T> NEVER Money<T> operator%(Money<T> a, T b) { return {static_cast<T>(a.cents % b)}; }
template <typename T> NEVER Money<T> operator,(Money<T> a, Money<T> b) { return {static_cast<T>(a.cents ^ b.cents)}; }
template <typename T> NEVER bool operator&&(Money<T> a, Money<T> b) { return a.cents > b.cents; }
template <typename T> NEVER bool operator<(Money<T> a, Money<T> b) { return a.cents < b.cents + 1; }
template <typename T> NEVER Money<T> operator<<(Money<T> a, int b) { return {static_cast<T>(a.cents << b)}; }
template <typename T> NEVER T biggest(T a, T b) { return a > b ? a : b; }
template <int N> NEVER int constant() { return N + 7; }
NEVER long double operator""_eur(long double x) { return x * 5; }
static NEVER int hidden(int x) { return x * 3; }
}

template <typename T> static NEVER int all(T x) {
  using namespace shop;
  Money<T> a{x}, b{x};
  ++a, a += x;
  int sum = a.total() + a.plus(1) + a.plus(2.0) + (a == b) + !a + a[1] + a(2) + (a + b).cents + (a - b).cents;
  sum += (a * x).cents + (a % static_cast<T>(x + 1)).cents + (a, b).cents + (a && b) + (a < b) + (a << 1).cents;
  return sum + biggest<T>(x, 3) + constant<1>() + constant<2>() + hidden(x) + static_cast<int>(2.5_eur);
}

int main(int count, char **) { return all<int>(count) + all<short>(count) + all<long>(count); }
