package webhook

import (
	"fmt"
	"net/http"
	"time"
)

// Outcome is what came of a try.
type Outcome struct {
	// Status is that of the answer; 0 when there was none, and Err then says why.
	Status int
	Err    string
	// Accepted and Refused are what a script says, which has no status.
	Accepted, Refused bool
	// After is what Retry-After asks for; 0 when it is not there.
	After time.Duration
}

// Reason says in words why a try failed; empty when it did not.
func (o Outcome) Reason() string {
	switch {
	case o.Accepted, o.Status >= 200 && o.Status < 300:
		return ""
	case o.Err != "":
		return o.Err
	}
	return fmt.Sprintf("the receiver answered %d %s", o.Status, http.StatusText(o.Status))
}

// Verdict is what follows from the outcome of a try.
type Verdict int

// The verdicts.
const (
	// Delivered: the receiver has accepted the news.
	Delivered Verdict = iota
	// Retry: they are tried again.
	Retry
	// Dead: they are given up.
	Dead
	// Gone: the receiver wants nothing any more.
	Gone
)

// The bounds of tries.
const (
	// firstDelay is the wait after the first try that failed; it doubles up to maxDelay.
	firstDelay, maxDelay = 5 * time.Second, 15 * time.Minute
	// maxAsked bounds what Retry-After may ask for.
	maxAsked = time.Hour
	// maxAge is how old news are that are given up when they fail.
	maxAge = 24 * time.Hour
	// maxRefusals is how often news are tried that the receiver refuses: the next may be
	// accepted, and would wait for them.
	maxRefusals = 8
)

// Decide returns what follows from the outcome of a try of news that are of some age, the
// how manieth it was, and when to try again. random is from 0 to 1: it spreads the tries of
// many webhooks.
func Decide(o Outcome, tries int, age time.Duration, random float64) (Verdict, time.Duration) {
	refused := o.Refused || o.Status >= 400 && o.Status < 500 && o.Status != http.StatusRequestTimeout && o.Status != http.StatusTooEarly && o.Status != http.StatusTooManyRequests
	switch {
	case o.Reason() == "":
		return Delivered, 0
	case o.Status == http.StatusGone:
		return Gone, 0
	case age >= maxAge, refused && tries >= maxRefusals:
		return Dead, 0
	}
	delay := firstDelay
	for n := 1; n < tries && delay < maxDelay; n++ {
		delay *= 2
	}
	delay = min(delay, maxDelay)
	delay = delay/2 + time.Duration(random*float64(delay/2))
	return Retry, max(delay, min(o.After, maxAsked))
}
