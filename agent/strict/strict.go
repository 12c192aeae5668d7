// Package strict reads JSON of the program's own making: messages, journals and
// other files.
//
// It decides that such a text is one value of known members and nothing else,
// so that a text of another version or that was written over in part is not
// taken for what it resembles. What people write is read by document, which
// tells them of every mistake.
package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

var errMore = errors.New("more follows after the JSON value; there may be just one")

// JSON reads a text that is exactly one JSON value of known members into value.
func JSON(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errMore
	}
	return nil
}
