static inline __attribute__((always_inline)) int round_up(int price) {
  volatile int rounded = price * 3;
  return rounded + 1;
}
__attribute__((noinline)) int pay(int price) {
  return round_up(price) + 2;
}
void _start(void) {
  pay(7);
  for (;;) {
  }
}
