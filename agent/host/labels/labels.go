// Package labels reads and watches the files by which the programs of a host say what its labels are.
//
// It decides which labels are in force: those given to the worker, and those in the files of a folder.
// It never writes or deletes a file, and knows neither runs nor the site.
package labels

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/smallfile"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

const (
	// maxSize bounds a file, in bytes, and maxFiles how many are read.
	maxSize  = 16 << 10
	maxFiles = 100
)

// form says what a line may be.
const form = "use KEY=VALUE, each " + names.LabelForm

// line is a label in a file.
type line struct {
	number     int
	key, value string
	// problem says why the line has no effect, and what would be right; nil when it has one.
	problem error
}

// parse reads the lines of a file. Empty lines, and those that begin with "#", say nothing.
func parse(body []byte) (all []line) {
	number := 0
	for text := range strings.Lines(string(body)) {
		number++
		if text = strings.TrimSpace(text); text == "" || text[0] == '#' {
			continue
		}
		l := line{number: number}
		key, value, found := strings.Cut(text, "=")
		if key, value = strings.TrimSpace(key), strings.TrimSpace(value); !found || !names.ValidLabel(key) || value != "" && !names.ValidLabel(value) {
			l.problem = fmt.Errorf("%.200q is invalid; %s", text, form)
		} else {
			l.key, l.value = key, value
		}
		all = append(all, l)
	}
	return all
}

// judge returns what a worker that runs as the user self reads of a file, or why it reads nothing.
func judge(f smallfile.File, self int) ([]line, error) {
	switch {
	case !f.Mode.IsRegular():
		return nil, errors.New("it is no regular file; write a file of lines KEY=VALUE")
	case !f.IsTrusted(self):
		return nil, fmt.Errorf("it belongs to user %d; it should belong to root or to the worker's user %d", f.Owner, self)
	case f.Err != nil:
		return nil, f.Err
	case f.Size > maxSize:
		return nil, fmt.Errorf("it has %d bytes; use at most %d", f.Size, maxSize)
	}
	return parse(f.Body), nil
}

// merged returns the labels in force: the given ones and, of other keys, those of the files. Of
// several files the last by name counts, of several lines the last. problems says what of the files has
// no effect, and what would be right.
func merged(given map[string]string, files []smallfile.File, self int) (labels map[string]string, problems []error) {
	labels = map[string]string{}
	maps.Copy(labels, given)
	for i, f := range files {
		if i == maxFiles {
			return labels, append(problems, fmt.Errorf("the labels of file %s and of those after it do not count: there are more than %d files; write several labels into one", f.Name, maxFiles))
		}
		lines, err := judge(f, self)
		if err != nil {
			problems = append(problems, fmt.Errorf("the labels of file %s do not count: %w", f.Name, err))
		}
		for _, l := range lines {
			fixed, isGiven := given[l.key]
			_, known := labels[l.key]
			switch {
			case l.problem != nil:
			case isGiven && fixed != l.value:
				l.problem = fmt.Errorf("label %s is %q by the worker's --label, which wins; remove one of them", l.key, fixed)
			case !known && len(labels) >= names.MaxLabels:
				l.problem = fmt.Errorf("label %s is one too many; a host may have %d", l.key, names.MaxLabels)
			default:
				labels[l.key] = l.value
			}
			if l.problem != nil {
				problems = append(problems, fmt.Errorf("line %d of file %s does not count: %w", l.number, f.Name, l.problem))
			}
		}
	}
	return labels, problems
}
