package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
)

// EncodeSummed returns a file with a value as one member and a sum over the bytes of
// that value: a bit that a disk has flipped must not turn one value into another.
func (k Kind) EncodeSummed(member string, value any) ([]byte, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	file, err := k.Encode(map[string]any{member: json.RawMessage(body), "sum": sumOf(body)})
	return append(file, '\n'), err
}

// DecodeSummed reads what EncodeSummed has written. An error for which IsUnsupported
// does not hold means that the text is damaged.
func (k Kind) DecodeSummed(text []byte, member string, value any) error {
	var file map[string]json.RawMessage
	if err := k.Decode(text, &file); err != nil {
		return err
	}
	var sum string
	if err := json.Unmarshal(file["sum"], &sum); err != nil || sum != sumOf(file[member]) {
		return errors.New("its sum is wrong")
	}
	return json.Unmarshal(file[member], value)
}

func sumOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
