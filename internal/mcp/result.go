// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/jsonschema"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/tools"
)

const (
	// maxResult bounds the text of a result, before the limit of the model's context.
	maxResult = 256 << 10
	// maxImage and maxImages bound the size and number of the images of a result, which a ChatMessage holds in base64.
	maxImage, maxImages = 512 << 10, 8
	// maxType is how many characters of an unknown type are shown.
	maxType = 60
)

// Attached ends the text that stands for an attached image in a result.
const Attached = " is attached]"

// imageTypes are the types of images that models take, with the extensions of their files.
var imageTypes = map[string]string{"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

// reader converts a result for the model, and attaches its images.
type reader struct {
	secrets scrubber
	call    tools.Call
	images  int
}

// answer is the result of a call. Its parts are decoded separately: an invalid one loses no other.
type answer struct {
	Content           json.RawMessage `json:"content"`
	StructuredContent json.RawMessage `json:"structuredContent"`
	IsError           lenientText     `json:"isError"`
}

// readAnswer decodes a result. A result that is no object is content.
func readAnswer(raw json.RawMessage) (a answer) {
	if json.Unmarshal(raw, &a) != nil {
		return answer{Content: raw}
	}
	return a
}

func (a *answer) isFailure() bool { return strings.EqualFold(string(a.IsError), "true") }

// blocks are the parts of the content. Content that is no list is the only part.
func (a *answer) blocks() (all []json.RawMessage) {
	switch {
	case isNull(a.Content):
		return nil
	case json.Unmarshal(a.Content, &all) != nil:
		return []json.RawMessage{a.Content}
	}
	return all
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// text is the result as text. Structured content is added as JSON, unless a text has it already.
func (r *reader) text(a *answer) string {
	var texts []string
	for _, raw := range a.blocks() {
		if text := r.block(raw); text != "" {
			texts = append(texts, text)
		}
	}
	if !isNull(a.StructuredContent) && !isRepeated(a, texts) {
		texts = append(texts, reencode(a.StructuredContent))
	}
	switch {
	case len(texts) > 0:
		return r.secrets.scrub(strings.Join(texts, "\n"))
	case a.isFailure():
		return "the tool failed, and did not say why"
	}
	return "The call is done. Its result is empty."
}

// block is a part of the content, of any type.
type block struct {
	Type        lenientText     `json:"type"`
	Text        lenientText     `json:"text"`
	Data        lenientData     `json:"data"`
	Blob        lenientData     `json:"blob"`
	Resource    json.RawMessage `json:"resource"`
	URI         lenientText     `json:"uri"`
	Name        lenientText     `json:"name"`
	Description lenientText     `json:"description"`
}

// block is a part of the content as text, or why it is omitted.
func (r *reader) block(raw json.RawMessage) string {
	var b block
	switch {
	case isNull(raw):
		return "[content was left out: it is null]"
	case json.Unmarshal(raw, &b) != nil:
		var text lenientText
		_ = text.UnmarshalJSON(raw) // It takes all values.
		return string(text)
	}
	switch b.Type {
	case "text":
		return string(b.Text)
	case "image":
		return r.image(b.Data)
	case "audio":
		return omittedAudio(b.Data)
	case "resource_link":
		return strings.TrimSpace(fmt.Sprintf("[resource %s: %s] %s", b.URI, b.Name, b.Description))
	case "resource":
		return r.resource(b.Resource)
	case "":
		if b.Text != "" {
			return string(b.Text)
		}
		return "[content was left out: it has no type]"
	}
	return fmt.Sprintf("[content of type %q was left out: its type is unknown]",
		clip.Ellipsis(printable.Line(string(b.Type)), maxType))
}

func omittedAudio(data lenientData) string {
	if data.invalid {
		return "[audio was left out: its data is not base64]"
	}
	return fmt.Sprintf("[audio of %d bytes was left out: models do not get audio]", len(data.bytes))
}

func (r *reader) resource(raw json.RawMessage) string {
	var c block
	switch {
	case isNull(raw) || json.Unmarshal(raw, &c) != nil:
		return "[a resource was left out: it is not an object]"
	case c.Blob.invalid:
		return fmt.Sprintf("[resource %s was left out: its data is not base64]", c.URI)
	case len(c.Blob.bytes) == 0:
		return fmt.Sprintf("[resource %s]\n%s", c.URI, c.Text)
	case imageTypes[http.DetectContentType(c.Blob.bytes)] != "":
		return fmt.Sprintf("[resource %s]\n%s", c.URI, r.image(c.Blob))
	}
	return fmt.Sprintf("[resource %s: %d bytes that are no text and no image were left out]", c.URI, len(c.Blob.bytes))
}

// image attaches an image, and names it. Its type follows from its content.
func (r *reader) image(image lenientData) string {
	if image.invalid {
		return "[an image was left out: its data is not base64]"
	}
	kind, problem := http.DetectContentType(image.bytes), ""
	name := fmt.Sprintf("%s-%d.%s", r.call.ID, r.images+1, imageTypes[kind])
	switch {
	case imageTypes[kind] == "":
		problem = "it is no PNG, JPEG, GIF or WebP"
	case len(image.bytes) > maxImage:
		problem = fmt.Sprintf("it has more than %d KiB", maxImage>>10)
	case r.images == maxImages:
		problem = fmt.Sprintf("a result has at most %d", maxImages)
	case !r.call.Attach(v1beta1.MessageFile{Name: name, MediaType: kind,
		Data: base64.StdEncoding.EncodeToString(image.bytes)}):
		problem = "the results of this reply leave no room for it"
	default:
		r.images++
		return "[image " + name + Attached
	}
	return fmt.Sprintf("[an image of %d bytes was left out: %s]", len(image.bytes), problem)
}

// isRepeated reports whether the texts have all of the structured content. Servers repeat it as JSON, or the value of
// its only member: as it is, as JSON, or each of its elements as a text.
func isRepeated(a *answer, texts []string) bool {
	structured, err := decode(a.StructuredContent)
	if err != nil || slices.ContainsFunc(texts, func(text string) bool { return is(text, structured) }) {
		return true
	}
	members, ok := structured.(map[string]any)
	if !ok || len(members) != 1 {
		return false
	}
	content, _ := decode(a.Content)
	for _, member := range members {
		elements, ok := member.([]any)
		return ok && slices.EqualFunc(texts, elements, is) || areEqual(content, member) ||
			slices.ContainsFunc(texts, func(text string) bool { return is(text, member) })
	}
	return false
}

// is reports whether a text is the value, or its JSON.
func is(text string, value any) bool {
	if value == text {
		return true
	}
	decoded, err := decode([]byte(text))
	return err == nil && areEqual(decoded, value)
}

// lenientText is a text, or another JSON value as its JSON. Null is empty.
type lenientText string

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (t *lenientText) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*t = lenientText(text)
		return nil
	}
	*t = lenientText(reencode(raw))
	return nil
}

// lenientData are bytes in base64, also without padding, in the alphabet for URLs, or in a data: URI.
type lenientData struct {
	bytes   []byte
	invalid bool
}

// toRawStdBase64 converts other forms of base64.
var toRawStdBase64 = strings.NewReplacer("-", "+", "_", "/", "=", "", " ", "", "\t", "", "\r", "", "\n", "")

// UnmarshalJSON implements json.Unmarshaler. It never fails.
func (d *lenientData) UnmarshalJSON(raw []byte) error {
	var text string
	err := json.Unmarshal(raw, &text)
	if header, data, found := strings.Cut(text, ";base64,"); found && strings.HasPrefix(header, "data:") {
		text = data
	}
	if err == nil {
		d.bytes, err = base64.RawStdEncoding.DecodeString(toRawStdBase64.Replace(text))
	}
	d.invalid = err != nil
	return nil
}

// decode decodes a single JSON value. Numbers stay as they are written.
func decode(raw []byte) (value any, err error) {
	if !json.Valid(raw) {
		return nil, errors.New("it is not a JSON value")
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// reencode writes JSON again, without escapes that hide secrets.
func reencode(raw []byte) string {
	value, err := decode(raw)
	if err != nil {
		return ""
	}
	text, _ := tools.Encode(value) // It was decoded from JSON.
	return text
}

// areEqual reports whether two decoded JSON values are equal. It changes the format of their numbers.
func areEqual(a, b any) bool {
	return reflect.DeepEqual(jsonschema.WithNumbers(a, byValue), jsonschema.WithNumbers(b, byValue))
}

// maxNumber and maxExponent bound the characters of numbers that are compared by value, because a short text can be a
// very large number.
const maxNumber, maxExponent = 64, 4

// byValue is the canonical form of a number.
func byValue(number json.Number) any {
	_, exponent, _ := strings.Cut(strings.ToLower(number.String()), "e")
	exact, ok := new(big.Rat), len(number) <= maxNumber && len(exponent) <= maxExponent
	if ok {
		exact, ok = exact.SetString(number.String())
	}
	if !ok {
		return number
	}
	return json.Number(exact.RatString())
}
