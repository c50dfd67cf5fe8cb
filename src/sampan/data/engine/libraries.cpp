// Linked once, so that the compiler builds its C and C++ libraries; never run.
#include <iostream>
#include <thread>

int main() {
    try {
        std::thread([] { std::cout << 1; }).join();
    } catch (const std::exception & error) {
        std::cerr << error.what();
    }
    return 0;
}
