package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOutage: after a request without an answer, requests fail at once for a while, and
// then one is sent again. An answer of any status is one.
func TestOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		var dead atomic.Bool
		dead.Store(true)
		c := piped(t, func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if dead.Load() {
				<-r.Context().Done()
				return
			}
			w.WriteHeader(http.StatusNotFound)
		}, retries(-1), func(o *Options) { o.Timeout, o.Outage = 5*time.Second, time.Minute })
		ask := func() error {
			_, err := c.Run(t.Context(), "acme", 1)
			return err
		}
		for range 3 {
			begin := time.Now()
			if err := ask(); err == nil || asked.Load() != 1 || time.Since(begin) > 5*time.Second {
				t.Fatalf("got %v after %d requests and %s", err, asked.Load(), time.Since(begin))
			}
		}
		if err := ask(); !strings.Contains(err.Error(), "not sent, because an earlier request had no answer") {
			t.Errorf("got %v", err)
		}
		dead.Store(false)
		time.Sleep(time.Minute)
		for range 2 {
			if err := ask(); !HasStatus(err, http.StatusNotFound) {
				t.Errorf("got %v", err)
			}
		}
		if asked.Load() != 3 {
			t.Errorf("%d requests, want 3", asked.Load())
		}
	})
}

// TestOutage_aCallerWithoutPatience says nothing about the server, and neither does one
// that has stopped.
func TestOutage_aCallerWithoutPatience(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		c := piped(t, func(_ http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			<-r.Context().Done()
		}, retries(-1), func(o *Options) { o.Outage = time.Minute })
		for want, patience := range map[int]time.Duration{1: time.Second} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			if _, err := c.Run(ctx, "acme", 1); !errors.Is(err, context.DeadlineExceeded) || asked.Load() != int64(want) {
				t.Errorf("got %v after %d requests", err, asked.Load())
			}
			cancel()
		}
		stopped, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Second, cancel)
		if _, err := c.Run(stopped, "acme", 1); err == nil || asked.Load() != 2 {
			t.Errorf("got %v after %d requests", err, asked.Load())
		}
		patient, cancel := context.WithTimeout(t.Context(), hungAfter)
		defer cancel()
		for range 2 {
			if _, err := c.Run(patient, "acme", 1); err == nil || asked.Load() != 3 {
				t.Errorf("got %v after %d requests", err, asked.Load())
			}
		}
	})
}

// TestOutage_ofAPatientCaller: its requests are sent during an outage, once each, and their
// errors say that the server is silent.
func TestOutage_ofAPatientCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		var dead atomic.Bool
		dead.Store(true)
		c := piped(t, func(w http.ResponseWriter, _ *http.Request) {
			asked.Add(1)
			if dead.Load() {
				panic(http.ErrAbortHandler)
			}
			w.WriteHeader(http.StatusNotFound)
		}, retries(3), func(o *Options) { o.Outage = time.Minute })
		ask := func() error {
			_, err := c.Run(Patient(t.Context()), "acme", 1)
			return err
		}
		for want := range int64(2) {
			if err := ask(); !Silent(err) || Unsent(err) || asked.Load() != want+1 {
				t.Errorf("got %v after %d requests", err, asked.Load())
			}
		}
		dead.Store(false)
		if err := ask(); Silent(err) || !HasStatus(err, http.StatusNotFound) {
			t.Errorf("got %v", err)
		}
	})
}
