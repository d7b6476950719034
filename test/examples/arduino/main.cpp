// What Arduino's core does with a sketch.
#include <unistd.h>
#include <cstdlib>

void setup();
void loop();

int main() {
  srand(getpid());
  setup();
  for (;;) loop();
}
