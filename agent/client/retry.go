package client

import (
	"context"
	"crypto/tls"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"
)

// checkRetry is the policy of terraform.md 3.6 as go-retryablehttp asks for it.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	status := 0
	if err == nil {
		status = resp.StatusCode
	}
	if !again(tallyOf(ctx).method, status, err) {
		return false, nil
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	// An answer now says more than "deadline exceeded" after a useless wait.
	if wait, ok := retryAfter(resp, time.Now()); ok {
		deadline, bounded := ctx.Deadline()
		return !bounded || time.Now().Add(wait).Before(deadline), nil
	}
	return true, nil
}

// again decides whether a request may be sent once more, after an answer with
// status or, when err is set, after none.
func again(method string, status int, err error) bool {
	harmless := method != http.MethodPost && method != http.MethodPatch
	switch {
	case err != nil:
		return !hopeless(err) && (harmless || unsent(err))
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		return true // The server says that it did nothing.
	case status == http.StatusNotImplemented:
		return false // It will not be implemented a second later.
	}
	return harmless && status >= http.StatusInternalServerError
}

// hopeless is what another try will meet again.
func hopeless(err error) bool {
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.Is(err, errTooLarge)
}

// unsent reports whether nothing was sent: there was no connection to send on.
func unsent(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// backoff is how long go-retryablehttp waits before try n+1, n from 0.
func backoff(waitMin, waitMax time.Duration, n int, resp *http.Response) time.Duration {
	if wait, ok := retryAfter(resp, time.Now()); ok {
		return wait
	}
	return jitter(waitMin, waitMax, n, rand.Float64())
}

// jitter spreads waits over the whole of a span that doubles with each try
// ("full jitter"), so that clients that failed together do not come back
// together. Random is in [0, 1).
func jitter(waitMin, waitMax time.Duration, n int, random float64) time.Duration {
	span := waitMin
	for ; n > 0 && span < waitMax; n-- {
		span *= 2
	}
	return time.Duration(random * float64(min(span, waitMax)))
}

// longestWait keeps an absurd Retry-After from overflowing a duration; the
// context ends the wait before that.
const longestWait = 24 * time.Hour

// retryAfter reads Retry-After, in seconds or as a date (RFC 9110 10.2.3), of
// an answer that may have one.
func retryAfter(resp *http.Response, now time.Time) (time.Duration, bool) {
	if resp == nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0, false
	}
	header := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longestWait), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), longestWait), true
	}
	return 0, false
}
