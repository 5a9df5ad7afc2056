#include "broker/simulate/program.h"

int main(int argc, char **argv) { return simulate_main(argc, argv); }
