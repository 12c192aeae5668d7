package run

import "fmt"

// failures counts the hosts that failed against max-failures.
type failures struct {
	most int
	// count is how many hosts have failed since a person last reset it.
	count int
	// halt is why failures stop the run; empty while they do not.
	halt string
}

// add counts a host that has failed. It returns why that is one failure too many;
// empty when it is not, or when the run is stopped already.
func (f *failures) add(host, text string) string {
	f.count++
	switch {
	case f.count < f.most || f.halt != "":
		return ""
	case f.most > 1:
		return fmt.Sprintf("%d hosts failed, the last one was %s: %s", f.count, host, text)
	}
	return fmt.Sprintf("host %s failed: %s", host, text)
}

// reset forgets the failures so far.
func (f *failures) reset() { f.count = 0 }

// stop notes why the run stops. The first reason stays.
func (f *failures) stop(why string) {
	if f.halt == "" {
		f.halt = why
	}
}
