//go:build crash

package cli

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
)

// crashSocket names the socket of the test that decides who crashes where.
const crashSocket = "OSUPGRADE_CRASH"

// crashPoint returns what a process does at each labelled action: it tells the
// test, and kills itself there if the test says so. It also ends when the test
// does.
func crashPoint(process string) func(label string) {
	address := os.Getenv(crashSocket)
	if address == "" {
		return nil
	}
	test, err := net.Dial("unix", address)
	if err != nil {
		crash()
	}
	verdicts := make(chan byte)
	go func() {
		for reader := bufio.NewReader(test); ; {
			verdict, err := reader.ReadByte()
			if err != nil {
				crash()
			}
			verdicts <- verdict
		}
	}()
	var one sync.Mutex
	return func(label string) {
		one.Lock()
		defer one.Unlock()
		if _, err := fmt.Fprintf(test, "%s %s\n", process, label); err != nil {
			crash()
		}
		if <-verdicts == 'k' {
			crash()
		}
	}
}

// crash ends the process as a fault would: at once, with nothing put in order.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
