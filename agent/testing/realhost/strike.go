package realhost

import "testing"

// Strike has attempt interrupt a host until it has struck as often as wanted. An attack that
// comes too late, because the upgrade has ended before, proves nothing: the attempt returns
// false then, after the same checks, and is made again. n counts the attempts from 0. The test
// fails if [Attempts] of them do not suffice.
func Strike(t testing.TB, what string, times int, attempt func(n int) (struck bool)) {
	t.Helper()
	struck := 0
	for n := range Attempts(times) {
		if struck == times {
			break
		}
		if attempt(n) {
			struck++
		}
		t.Logf("%s: %d of %d struck after %d attempts", what, struck, times, n+1)
	}
	if struck < times {
		t.Fatalf("%s: only %d of %d struck in %d attempts; the others came too late", what, struck, times, Attempts(times))
	}
}

// Attempts is how many attempts [Strike] makes at most.
func Attempts(times int) int {
	if times == 0 {
		return 0
	}
	return 2*times + 6
}
