// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonschema validates JSON by JSON Schemas (2020-12 unless $schema names another draft), and says what is wrong
// in words for people and models. It fetches no schemas. The package is pure.
package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"parley.dev/parley/internal/clip"
)

const (
	// maxProblems is how many problems are reported, maxProblem how many characters each has.
	maxProblems, maxProblem = 8, 300
	// location is where the schema stands, for references within it.
	location = "parley:///schema"
)

// Schema is a compiled schema. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// Compile compiles a schema. The error says what is wrong with it.
func Compile(schema string) (*Schema, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("reading the JSON Schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(location, document); err != nil {
		return nil, fmt.Errorf("reading the JSON Schema: %w", err)
	}
	compiled, err := c.Compile(location)
	if invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if problems := problemsOf(invalid.Err); problems != "" {
			return nil, fmt.Errorf("the JSON Schema is invalid: %s", problems)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the JSON Schema is invalid: %s", strings.ReplaceAll(err.Error(), location, ""))
	}
	return &Schema{compiled}, nil
}

// Problems say what of a JSON text does not match the schema, with the place of each; empty if it matches.
func (s *Schema) Problems(text string) string {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return "it is not one JSON value: " + err.Error()
	}
	return problemsOf(s.compiled.Validate(value))
}

// noLoader loads nothing: a schema must not make Parley call a host or read a file.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are not supported: %s", url)
}

// compilePattern compiles a regular expression. One that Go does not know, such as a lookahead, matches everything: the
// provider's model is told of it all the same.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	compiled, err := regexp.Compile(pattern)
	if err != nil {
		return anything(pattern), nil
	}
	return compiled, nil
}

// anything is a pattern that matches every text.
type anything string

// MatchString implements jsonschema.Regexp.
func (anything) MatchString(string) bool { return true }

// String implements fmt.Stringer.
func (a anything) String() string { return string(a) }

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
	add := func(at []string, what string) {
		if len(problems) == maxProblems {
			more++
			return
		}
		problems = append(problems, clip.Ellipsis(fmt.Sprintf("%s: %s", pointer(at), what), maxProblem))
	}
	leaves(invalid, add)
	text := strings.Join(problems, "; ")
	if more > 0 {
		text += fmt.Sprintf("; and %d more problems", more)
	}
	return text
}

// leaves reports the errors without causes. Of a choice between schemas, that none matches is the problem.
func leaves(e *jsonschema.ValidationError, add func(at []string, what string)) {
	switch e.ErrorKind.(type) {
	case *kind.AnyOf, *kind.OneOf:
		add(e.InstanceLocation, "matches none of the alternatives, or several of them")
	case *kind.Not:
		add(e.InstanceLocation, "matches a schema that it must not match")
	default:
		if len(e.Causes) == 0 {
			add(e.InstanceLocation, e.ErrorKind.LocalizedString(english))
		}
		for _, cause := range e.Causes {
			leaves(cause, add)
		}
	}
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
