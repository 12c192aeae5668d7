package cli

import (
	"os"
	"os/signal"
	"syscall"
)

// hangups keeps a program that runs for long alive when its terminal is closed or
// nobody reads what it prints any more. It calls each for every SIGHUP, until stop
// is called. Programs that this one starts keep their own way with both signals.
func hangups(each func()) (stop func()) {
	hup, pipe, done := make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hup, syscall.SIGHUP)
	// Nobody reads these: once they are caught, a write to a closed pipe is an error
	// like any other.
	signal.Notify(pipe, syscall.SIGPIPE)
	go func() {
		for {
			select {
			case <-hup:
				each()
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(hup)
		signal.Stop(pipe)
		close(done)
	}
}
