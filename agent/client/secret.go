package client

import (
	"encoding/json"
	"net/url"
	"strings"
	"unicode"
)

// secret is the token, and how to keep it out of a text.
type secret struct {
	token string
	hide  *strings.Replacer
}

const hidden = "(token)"

func newSecret(token string) *secret {
	pairs := []string{token, hidden}
	for _, spelling := range []string{quoted(token), url.QueryEscape(token), url.PathEscape(token)} {
		if spelling != token {
			pairs = append(pairs, spelling, hidden)
		}
	}
	return &secret{token, strings.NewReplacer(pairs...)}
}

// quoted is the token as it stands inside a JSON string.
func quoted(token string) string {
	b, err := json.Marshal(token)
	if err != nil {
		return token
	}
	return strings.Trim(string(b), `"`)
}

// clean makes a text from outside fit to be shown: without the token, which
// servers have been seen to repeat, and without characters that steer a
// terminal.
func (s *secret) clean(text string) string {
	text = s.hide.Replace(text)
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}
