// The observers behind the checks.
#ifndef PTXEMU_CHECK_OBSERVERS_H
#define PTXEMU_CHECK_OBSERVERS_H

#include "check/observer.h"

extern const Observer order_observer;      // race, proxy, tcgen05, and exit where order is known
extern const Observer registers_observer;  // race, tcgen05: registers of asynchronous instructions
extern const Observer uninit_observer;     // uninit
extern const Observer mbarrier_observer;   // mbarrier
extern const Observer tmem_observer;       // tmem: what is no fault
extern const Observer exit_observer;       // exit: bulk stores that still read
extern const Observer grid_observer;       // grid

// Whether the kernel has a griddepcontrol.wait, which grid_observer is for.
bool grid_waits(const Machine *machine);
// Lines of the instructions that arrived at an mbarrier so far, or NULL; for the explanation of a hang.
const char *mbarrier_describe_arrivals(Machine *machine, const Cta *cta, uint32_t offset);

#endif
