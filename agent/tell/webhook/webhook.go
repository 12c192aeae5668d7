// Package webhook sends news to the receivers that a tenant has declared, signed as
// Standard Webhooks have it (https://www.standardwebhooks.com).
//
// It decides when a receiver is tried again and when news are given up (Decide, a pure
// function); each webhook has a goroutine of its own, so that a slow or hostile receiver
// holds up nobody else. News are sent in their order, at least once: how far a webhook has
// come is on disk after the receiver has accepted. The queue of a webhook is the news that
// are kept, so it is bounded whatever happens.
//
// It knows nothing of runs, and never follows a redirect.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a delivery.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// signatureVersion begins a symmetric signature.
const signatureVersion = "v1,"

// Tolerance is how far the timestamp of a delivery may be from the receiver's clock.
const Tolerance = 5 * time.Minute

// Sign returns the signature of a delivery.
func Sign(key []byte, id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, key)
	_, _ = fmt.Fprintf(mac, "%s.%d.", id, at.Unix())
	_, _ = mac.Write(body)
	return signatureVersion + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// ErrSignature means that a delivery was not signed by the secret, or is too old.
var ErrSignature = errors.New("the signature is not that of the secret")

// Verify checks the signature of a delivery, as a receiver does.
func Verify(key []byte, header http.Header, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(header.Get(HeaderTimestamp), 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %s %.40q is no time", ErrSignature, HeaderTimestamp, header.Get(HeaderTimestamp))
	}
	at := time.Unix(seconds, 0)
	if now.Sub(at).Abs() > Tolerance {
		return fmt.Errorf("%w: it was sent at %s", ErrSignature, at.UTC().Format(time.RFC3339))
	}
	want := Sign(key, header.Get(HeaderID), at, body)
	for text := range strings.FieldsSeq(header.Get(HeaderSignature)) {
		if hmac.Equal([]byte(text), []byte(want)) {
			return nil
		}
	}
	return ErrSignature
}
