package realhost

import (
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestProcessorTime checks the processor time of a process against what the kernel says
// of this one.
func TestProcessorTime(t *testing.T) {
	t.Parallel()
	own := func() time.Duration {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			t.Fatal(err)
		}
		return time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	for began := own(); own() < began+100*time.Millisecond; {
		continue
	}
	const resolution = 20 * time.Millisecond // of two figures in hundredths
	before := own()
	got := processorTime(strconv.Itoa(os.Getpid()))
	if after := own(); got < before-resolution || got > after+resolution {
		t.Errorf("the processor time is %s, and the kernel says from %s to %s", got, before, after)
	}
	if got := processorTime("0"); got != 0 {
		t.Errorf("a process that is not there has %s", got)
	}
}
