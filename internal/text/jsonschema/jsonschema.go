// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonschema validates JSON by JSON Schemas (2020-12 unless $schema names another draft), with errors for
// people and models. It fetches no schemas. The package is pure.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// maxProblems is how many problems are reported, maxProblem how many characters each has.
	maxProblems, maxProblem = 8, 300
	// location is the base of references within the schema.
	location = "parley:///schema"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	work     *work
}

// Compile compiles a schema. A schema must not make Parley call a host or read a file, so that it loads no others.
func Compile(schema string) (*Schema, error) {
	compiled, err := compile(schema, jsonschema.Draft2020, func(url string) (any, error) {
		return nil, fmt.Errorf("references to other documents are not supported: %s", url)
	})
	if err != nil {
		return nil, err
	}
	if err := compiled.work.bound(compiled.compiled, map[*jsonschema.Schema]bool{}); err != nil {
		return nil, fmt.Errorf("invalid JSON Schema: %w", err)
	}
	return compiled, nil
}

// Check returns an error if a schema is invalid by draft 2020-12 and by draft 7, which tools use as well. References to
// other documents are not followed.
func Check(schema string) error {
	all := func(string) (any, error) { return true, nil } // The schema that everything matches.
	_, err := compile(schema, jsonschema.Draft2020, all)
	if err != nil {
		if _, err := compile(schema, jsonschema.Draft7, all); err == nil {
			return nil
		}
	}
	return err
}

// CompileOutput compiles the schema of an output, which is bounded in size and has the type object, as all providers
// need. It also returns the schema as an object, as Object does.
func CompileOutput(raw []byte) (*Schema, map[string]any, error) {
	if n := len(raw); n > v1beta1.MaxOutputSchemaBytes {
		return nil, nil, fmt.Errorf("it has %d bytes, and may have %d", n, v1beta1.MaxOutputSchemaBytes)
	}
	schema, err := Compile(string(raw))
	if err != nil {
		return nil, nil, err
	}
	object, err := Object(raw)
	if err != nil || object["type"] != "object" { // true and false are schemas, too.
		return nil, nil, errors.New("its type must be object")
	}
	return schema, object, nil
}

// loader implements jsonschema.URLLoader.
type loader func(url string) (any, error)

// Load implements jsonschema.URLLoader.
func (l loader) Load(url string) (any, error) { return l(url) }

func compile(schema string, draft *jsonschema.Draft, load loader) (*Schema, error) {
	document, err := Decode(schema)
	if err != nil {
		return nil, fmt.Errorf("reading the JSON Schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(load)
	w := &work{patterns: maxPatterns, left: maxWork}
	c.UseRegexpEngine(w.compilePattern)
	if err := c.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("reading the JSON Schema: %w", err)
	}
	compiled, err := c.Compile(location)
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if problems := problemsOf(invalid.Err); problems != "" {
			return nil, fmt.Errorf("invalid JSON Schema: %s", problems)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("invalid JSON Schema: %s", strings.ReplaceAll(err.Error(), location, ""))
	}
	return &Schema{compiled, w}, nil
}

// Problems are the violations of the schema by a JSON text, each with its place; empty if it matches.
func (s *Schema) Problems(text string) string {
	value, err := Decode(text)
	if err != nil {
		return err.Error()
	}
	return s.ProblemsOf(value)
}

// ProblemsOf is Problems for a value that Decode has decoded.
func (s *Schema) ProblemsOf(value any) (problems string) {
	s.work.Lock()
	defer s.work.Unlock()
	s.work.left = maxWork
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case workExceeded:
			problems = "it takes too long to validate: write less"
		default:
			panic(fault)
		}
	}()
	return problemsOf(s.compiled.Validate(value))
}

// english formats the messages of the library.
var english = message.NewPrinter(language.English)

// problemsOf are the leaves of a validation error.
func problemsOf(err error) string {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return ""
	}
	var problems []string
	more := 0
	add := func(e *jsonschema.ValidationError) {
		if len(problems) == maxProblems {
			more++
			return
		}
		problems = append(problems, clip.Ellipsis(fmt.Sprintf("%s: %s", pointer(e.InstanceLocation), describe(e.ErrorKind)),
			maxProblem))
	}
	leaves(invalid, add)
	slices.SortStableFunc(problems, func(a, b string) int { // Those of one place keep their order.
		a, _, _ = strings.Cut(a, ": ")
		b, _, _ = strings.Cut(b, ": ")
		return strings.Compare(a, b)
	})
	text := strings.Join(problems, "; ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more problems", more)
	}
	return text
}

// leaves visits the errors without causes. A failed choice between schemas counts as one error.
func leaves(e *jsonschema.ValidationError, add func(*jsonschema.ValidationError)) {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf, *kind.Not:
		add(e)
	default:
		if len(e.Causes) == 0 {
			add(e)
		}
		for _, cause := range e.Causes {
			leaves(cause, add)
		}
	}
}

// describe is the text of a problem. The library would group the digits of numbers.
func describe(e jsonschema.ErrorKind) string {
	switch e := e.(type) {
	case *kind.AnyOf, *kind.OneOf:
		return "matches none of the alternatives, or several of them"
	case *kind.Not:
		return "matches a schema that it must not match"
	case *kind.AdditionalProperties:
		slices.Sort(e.Properties) // They come in any order.
	case *kind.Minimum:
		return fmt.Sprintf("must be at least %s, and is %s", e.Want.RatString(), e.Got.RatString())
	case *kind.Maximum:
		return fmt.Sprintf("must be at most %s, and is %s", e.Want.RatString(), e.Got.RatString())
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, and has %d", e.Want, e.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, and has %d", e.Want, e.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, and has %d", e.Want, e.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, and has %d", e.Want, e.Got)
	}
	return e.LocalizedString(english)
}

// pointer is the JSON pointer of a place; that of the whole is "the value".
func pointer(at []string) string {
	if len(at) == 0 {
		return "the value"
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1")
	var b strings.Builder
	for _, step := range at {
		b.WriteString("/" + escaped.Replace(step))
	}
	return b.String()
}

// Object decodes a schema that is an object. Its numbers are those of AsWritten.
func Object(raw []byte) (object map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&object); err != nil {
		return nil, err
	}
	WithNumbers(object, AsWritten)
	return object, nil
}

// WithNumbers changes the numbers in a decoded JSON value.
func WithNumbers(value any, change func(json.Number) any) any {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			value[name] = WithNumbers(value[name], change)
		}
	case []any:
		for i := range value {
			value[i] = WithNumbers(value[i], change)
		}
	case json.Number:
		return change(value)
	}
	return value
}

// AsWritten is a number that every encoder writes unchanged. A float64 rounds large integers, and the libraries of some
// providers encode a json.Number as a text.
func AsWritten(number json.Number) any { return json.RawMessage(number) }
