package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"unicode/utf8"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// maxText bounds each text of a record, in bytes, and maxDiff the one that shows a change.
	maxText, maxDiff = 1024, 16 << 10
)

// secrets are how the secrets that we make look, and a password in a URL.
var secrets = regexp.MustCompile(`\bosu[a-z]?_[0-9A-Za-z]{8,}(_[0-9A-Za-z]+)*|://[^\s/@"']*@`)

// clean makes a record fit, and takes out what looks like a secret: somebody may have typed
// one where a name belongs.
func clean(r *v1.AuditRecord) {
	for _, text := range []*string{&r.By, &r.From, &r.Action, &r.Object, &r.Error, &r.Request, &r.RequestID, &r.Detail, &r.Reason, &r.Before, &r.After, &r.Diff} {
		*text = secrets.ReplaceAllStringFunc(*text, func(found string) string {
			if strings.HasPrefix(found, "://") {
				return "://…@"
			}
			prefix, _, _ := strings.Cut(found, "_")
			return prefix + "_…"
		})
		if text != &r.Diff {
			*text = first(*text, maxText)
		}
	}
	if len(r.Diff) > maxDiff {
		r.Diff = cut(r.Diff, maxDiff)
	}
}

// first returns the beginning of a text.
func first(text string, most int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// cutMark ends a diff of which a part was left out.
const cutMark = "...\n"

// cut returns the first lines of a diff.
func cut(diff string, most int) string {
	diff = strings.TrimSuffix(diff, cutMark)
	diff = first(diff, min(most, len(diff)))
	return diff[:strings.LastIndexByte(diff, '\n')+1] + cutMark
}

func hashOf(text []byte) string {
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])
}
