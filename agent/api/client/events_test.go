package client

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// readEvents shows all events of a stream, and how it ended.
func readEvents(r io.Reader) ([]string, error) {
	var got []string
	s := newEvents(r, func() {})
	for s.next() {
		got = append(got, fmt.Sprintf("%s|%s|%s", s.event.kind, s.event.id, s.event.data))
	}
	return got, s.err
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		stream string
		want   string
	}{
		"one":                     {"event: run\nid: 7\ndata: {}\n\n", "run|7|{}"},
		"no blank after colons":   {"event:run\nid:7\ndata:{}\n\n", "run|7|{}"},
		"only one blank is taken": {"data:  a\n\n", "|| a"},
		"lines of Windows":        {"event: run\r\ndata: {}\r\n\r\n", "run||{}"},
		"comments between":        {": hello\n\n: alive\nevent: run\n: alive\ndata: {}\n\n: alive\n\n", "run||{}"},
		"data of several lines":   {"data: a\ndata\ndata: b\n\n", "||a\n\nb"},
		"an id alone":             {"id: 9\n\n", "|9|"},
		"an id of a log":          {"id: 1f3z0-42\ndata: a\n\n", "|1f3z0-42|a"},
		"an id for no header":     {"id: 9 x\ndata: a\n\n", "||a"},
		"a long id":               {"id: " + strings.Repeat("9", 101) + "\ndata: a\n\n", "||a"},
		"an id that is taken off": {"id\ndata: a\n\n", "||a"},
		"unknown fields":          {"retry: 5\nfoo: bar\n\ndata: a\n\n", "||a"},
		"two":                     {"data: a\n\n\n\ndata: b\n\n", "||a ||b"},
		"one that breaks off":     {"data: a\n\nevent: run\ndata: {\"id\"", "||a"},
		"one without its end":     {"data: a\n", ""},
		"nothing":                 {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readEvents(iotest.OneByteReader(strings.NewReader(row.stream)))
			wantEqual(t, "end", err, nil)
			wantEqual(t, "events", strings.Join(got, " "), row.want)
		})
	}
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("x", maxBody/4)
	for name, stream := range map[string]string{
		"one line":      "data: " + strings.Repeat("x", maxBody) + "\n\n",
		"one comment":   ":" + strings.Repeat("x", maxBody) + "\n\n",
		"several lines": strings.Repeat("data: "+line+"\n", 5) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := readEvents(strings.NewReader(stream)); !errors.Is(err, errEventTooLarge) {
				t.Errorf("got %v", err)
			}
		})
	}
	if got, err := readEvents(strings.NewReader(strings.Repeat("data: "+line+"\n", 3) + "\n")); len(got) != 1 {
		t.Errorf("an event below the limit: got %d events and %v", len(got), err)
	}
}

func TestEventsTellWhatBroke(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection reset")
	_, err := readEvents(io.MultiReader(strings.NewReader("data: a\n"), iotest.ErrReader(broken)))
	wantEqual(t, "end", err, broken)
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(": hello\n\nevent: run\nid: 7\ndata: {\"id\":41}\n\n"))
	f.Add([]byte("data: a\r\ndata: b\r\n\r\nid: 9\n\n"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		s := newEvents(strings.NewReader(string(stream)), func() {})
		whole := 0
		for s.next() {
			e := s.event
			whole += len(e.kind) + len(e.id) + len(e.data)
			if strings.Trim(e.id, "0123456789") != "" {
				t.Errorf("id %q is not fit for a header", e.id)
			}
			if strings.ContainsAny(e.kind, "\n") {
				t.Errorf("kind %q is of two lines", e.kind)
			}
		}
		if whole > len(stream) {
			t.Errorf("%d bytes became %d", len(stream), whole)
		}
	})
}
