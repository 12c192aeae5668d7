package strategy

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// SnapshotTime is the form of a time by which snapshot services name a state of their
// repositories.
const SnapshotTime = "20060102T150405Z"

// times are the placeholders of a SnapshotURL that a time replaces, each with its form.
var times = map[string]string{"{date}": time.DateOnly, "{time}": SnapshotTime, "{year}": "2006", "{month}": "01", "{day}": "02"}

// placeholder is a part of a SnapshotURL that is replaced.
var placeholder = regexp.MustCompile(`\{[^{}]*\}`)

// SnapshotURL is the pattern of the addresses at which a mirror or a snapshot service has the
// repositories of a host as they were at a time, such as https://mirror.example/{date}/{path}.
type SnapshotURL string

// Check returns what is wrong with a pattern that may have some words in braces besides those
// of a time.
func (u SnapshotURL) Check(words ...string) error {
	found := placeholder.FindAllString(string(u), -1)
	for _, one := range found {
		if times[one] == "" && !slices.Contains(words, one) {
			return fmt.Errorf("%.200q has %.50s; use {date}, {time}, {year}, {month}, {day}, %s", string(u), one, strings.Join(words, ", "))
		}
	}
	at, err := url.Parse(placeholder.ReplaceAllString(string(u), "x"))
	switch {
	case err != nil || at.Scheme == "" || at.Host == "" && at.Scheme != "file" || strings.ContainsAny(string(u), " \t\r\n"):
		return fmt.Errorf("%.200q is not an address; use one such as https://mirror.example/{date}/%s", string(u), strings.Join(words, "/"))
	case !slices.Contains(found, "{date}") && !slices.Contains(found, "{time}") && !slices.Contains(found, "{day}"):
		return fmt.Errorf("%.200q has no date; use {date}, which is 2006-01-02, {time}, which is %s, or {year}, {month} and {day}", string(u), SnapshotTime)
	}
	return nil
}

// At returns the address of a time. words are pairs of a word in braces and what replaces it.
func (u SnapshotURL) At(at time.Time, words ...string) string {
	pairs := slices.Clone(words)
	for word, form := range times {
		pairs = append(pairs, word, at.UTC().Format(form))
	}
	return strings.NewReplacer(pairs...).Replace(string(u))
}
