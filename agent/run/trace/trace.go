// Package trace decides which spans a record of a run ends, for people who follow a
// request from a REST call through the log to the hosts and back.
//
// The spans of a run are a pure function of its records (Run): their times are those of
// the log and their ids are hashes of what they are about. A site that was killed in the
// middle of a run therefore goes on with the same trace, and what it sends again after a
// crash has the ids that it had before. It does no I/O and knows nothing of collectors;
// package otlp sends spans. Hosts send none: what the site knows of their work, from the
// command to the reply, is all that there is.
//
// The format of the context is W3C Trace Context, Level 2.
package trace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// ID identifies a trace; zero identifies none.
type ID [16]byte

// SpanID identifies a span in a trace; zero identifies none.
type SpanID [8]byte

// Context is where a span stands: its trace, itself, and whether the trace is recorded.
type Context struct {
	Trace   ID
	Span    SpanID
	Sampled bool
}

// Valid reports whether it names a span.
func (c Context) Valid() bool { return c.Trace != ID{} && c.Span != SpanID{} }

// String is the value of the header traceparent; empty when it names no span.
func (c Context) String() string {
	if !c.Valid() {
		return ""
	}
	flags := "00"
	if c.Sampled {
		flags = "01"
	}
	return "00-" + hex.EncodeToString(c.Trace[:]) + "-" + hex.EncodeToString(c.Span[:]) + "-" + flags
}

// Lengths of the parts of a traceparent of version 00.
const (
	versionLength = len("00")
	traceLength   = len("00-") + 2*len(ID{})
	parentLength  = traceLength + len("-") + 2*len(SpanID{})
	wholeLength   = parentLength + len("-00")
)

// Parse reads a traceparent. One that is damaged names no span: who sent it is answered
// as if it had sent none (W3C Trace Context 3.2). A later version may have more at its end.
func Parse(s string) Context {
	later := len(s) > wholeLength && s[:versionLength] != "00" && s[wholeLength] == '-'
	if len(s) != wholeLength && !later || s[versionLength] != '-' || s[traceLength] != '-' || s[parentLength] != '-' {
		return Context{}
	}
	var c Context
	var version, flags [1]byte
	read := func(into []byte, text string) bool {
		_, err := hex.Decode(into, []byte(text))
		return err == nil && strings.ToLower(text) == text
	}
	if !read(version[:], s[:versionLength]) || version[0] == 0xff || !read(flags[:], s[parentLength+1:wholeLength]) ||
		!read(c.Trace[:], s[versionLength+1:traceLength]) || !read(c.Span[:], s[traceLength+1:parentLength]) || !c.Valid() {
		return Context{}
	}
	c.Sampled = flags[0]&1 == 1
	return c
}

type contextKey struct{}

// With returns a context in which a span is under way.
func With(ctx context.Context, c Context) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the span that is under way; none when no one has said.
func From(ctx context.Context) Context {
	c, _ := ctx.Value(contextKey{}).(Context)
	return c
}

// Kind says which side of a conversation a span is.
type Kind int

// The kinds of spans.
const (
	// Internal is inside of the site.
	Internal Kind = iota
	// Server answers a request, Client waits for the answer of somebody else.
	Server
	Client
)

// Span is something that has ended.
type Span struct {
	Context
	// Parent is the span that it is a part of; zero for the first of a trace.
	Parent SpanID
	// Remote tells that the parent is a span of another program.
	Remote     bool
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	// Failed tells that it has failed, Status why: a word of a list that is known
	// beforehand, never what a host has printed.
	Failed bool
	Status string
	Events []Event
}

// Event is what happened at one moment of a span.
type Event struct {
	Name       string
	At         time.Time
	Attributes []Attribute
}

// Attribute is what is said of a span: a text or a number.
type Attribute struct {
	Key      string
	Text     string
	Number   int64
	IsNumber bool
}

// Text makes an attribute of a text.
func Text(key, text string) Attribute { return Attribute{Key: key, Text: text} }

// Number makes an attribute of a number.
func Number(key string, n int64) Attribute { return Attribute{Key: key, Number: n, IsNumber: true} }

// Exporter takes the spans that are to be sent. None of its methods waits.
type Exporter interface {
	// Samples reports whether a trace is recorded whose first span at this site has a
	// parent; the parent is none for a trace that begins here.
	Samples(parent Context, id ID) bool
	// Put hands over spans that have ended.
	Put(spans ...Span)
}

// hash makes the bytes of an id of what it is about.
func hash(into []byte, about string) {
	sum := sha256.Sum256([]byte(about))
	copy(into, sum[:])
}
