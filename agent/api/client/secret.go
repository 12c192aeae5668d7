package client

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// secret is what must not be shown, such as the token, and how to keep it out of a text.
type secret struct {
	mu    sync.RWMutex
	pairs []string
	hide  *strings.Replacer
}

// What stands in the place of a token, and of what a login is made with.
const (
	hidden      = "(token)"
	hiddenProof = "(secret)"
)

func newSecret(token string) *secret {
	s := &secret{hide: strings.NewReplacer()}
	s.add(token, hidden)
	return s
}

// add hides another text, which what stands in its place says the kind of.
func (s *secret) add(text, instead string) {
	if text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.pairs, text) {
		return
	}
	s.pairs = append(s.pairs, text, instead)
	for _, spelling := range []string{quoted(text), url.QueryEscape(text), url.PathEscape(text)} {
		if spelling != text {
			s.pairs = append(s.pairs, spelling, instead)
		}
	}
	s.hide = strings.NewReplacer(s.pairs...)
}

// quoted is the text as it stands inside a JSON string.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		return text
	}
	return strings.Trim(string(b), `"`)
}

// clean makes a text from outside fit to be shown: without secrets, which
// servers have been seen to repeat, and without characters that steer a
// terminal.
func (s *secret) clean(text string) string {
	s.mu.RLock()
	hide := s.hide
	s.mu.RUnlock()
	text = hide.Replace(text)
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
