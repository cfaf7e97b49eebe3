/* SPDX-License-Identifier: BSD-3-Clause */
/* A PMIx client that does what its argument says, for the tests of the launcher.
 *
 *   pmix_client fence           joins the job, fences, leaves
 *   pmix_client abort STATUS    the last PE ends the job with that status, the others wait
 *   pmix_client crash SIGNAL    the last PE dies of that signal, the others wait in a fence
 *   pmix_client desert          the last PE exits with 0 without leaving the job, the others wait
 *   pmix_client stubborn        as crash 9, and the others ignore SIGTERM
 *   pmix_client report          prints "rank size app-number app-rank local-rank node-size"
 *   pmix_client event           the last PE dies, the others wait for the event that says so
 */
#include <pmix.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pmix_proc_t self, everybody;
static volatile sig_atomic_t dead_rank = -1;

static void fail(const char* call, pmix_status_t status) {
  fprintf(stderr, "pmix_client: %s: %s\n", call, PMIx_Error_string(status));
  _exit(99);
}

static uint32_t number(const pmix_proc_t* of, const char* key) {
  pmix_value_t* value = NULL;
  const pmix_status_t status = PMIx_Get(of, key, NULL, 0, &value);
  uint32_t result = 0;
  if (status != PMIX_SUCCESS) fail(key, status);
  if (value->type == PMIX_UINT32) result = value->data.uint32;
  if (value->type == PMIX_UINT16) result = value->data.uint16;
  if (value->type == PMIX_PROC_RANK) result = value->data.rank;
  PMIX_VALUE_RELEASE(value);
  return result;
}

static void fence(void) {
  const pmix_status_t status = PMIx_Fence(&everybody, 1, NULL, 0);
  if (status != PMIX_SUCCESS) fail("PMIx_Fence", status);
}

/* Until somebody ends this process; not for ever, should nobody do so. */
static void wait_for_the_end(void) {
  sleep(60);
  _exit(98);
}

static void on_event(size_t handler, pmix_status_t status, const pmix_proc_t* source,
                     pmix_info_t* info, size_t infos, pmix_info_t* results, size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void* data) {
  (void)handler, (void)status, (void)info, (void)infos, (void)results, (void)result_count;
  dead_rank = (sig_atomic_t)source->rank;
  if (done != NULL) done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, data);
}

static void wait_for_death_of(uint32_t rank) {
  for (int i = 0; i < 2000 && dead_rank < 0; ++i) usleep(10000);
  if (dead_rank != (sig_atomic_t)rank) {
    fprintf(stderr, "pmix_client: heard of the death of %d, not of %u\n", (int)dead_rank, rank);
    _exit(97);
  }
  printf("%u heard of the death of %d\n", self.rank, (int)dead_rank);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "fence";
  const int argument = argc > 2 ? atoi(argv[2]) : 0;
  pmix_status_t status;
  uint32_t size;
  int is_last;

  if (strcmp(mode, "stubborn") == 0) signal(SIGTERM, SIG_IGN);
  status = PMIx_Init(&self, NULL, 0);
  if (status != PMIX_SUCCESS) fail("PMIx_Init", status);
  PMIX_LOAD_PROCID(&everybody, self.nspace, PMIX_RANK_WILDCARD);
  size = number(&everybody, PMIX_JOB_SIZE);
  is_last = self.rank == size - 1;
  if (strcmp(mode, "event") == 0) {
    pmix_status_t code = PMIX_ERR_PROC_ABORTED;
    /* Without a callback the call waits until the handler is there. */
    PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
  }
  fence();

  if (strcmp(mode, "abort") == 0) {
    if (is_last) {
      PMIx_Abort(argument, "", NULL, 0);
      _exit(argument);
    }
    wait_for_the_end();
  }
  if (strcmp(mode, "crash") == 0 || strcmp(mode, "stubborn") == 0) {
    if (is_last) raise(argument != 0 ? argument : SIGKILL);
    fence(); /* returns although the dead PE never came */
    wait_for_the_end();
  }
  if (strcmp(mode, "desert") == 0) {
    if (is_last) _exit(0);
    wait_for_the_end();
  }
  if (strcmp(mode, "event") == 0) {
    if (is_last) raise(SIGKILL);
    wait_for_death_of(size - 1);
  }
  if (strcmp(mode, "report") == 0) {
    printf("%u %u %u %u %u %u\n", self.rank, size, number(&self, PMIX_APPNUM),
           number(&self, PMIX_APP_RANK), number(&self, PMIX_LOCAL_RANK),
           number(&everybody, PMIX_NODE_SIZE));
  }
  status = PMIx_Finalize(NULL, 0);
  if (status != PMIX_SUCCESS) fail("PMIx_Finalize", status);
  return 0;
}
