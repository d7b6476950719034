#include <Client.h>
