// Predictors give the bits of linear(), layer by layer, for every type, size and way in, and allocate nothing on the way.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>
#include <string>
#include <thread>

#include "bpls/bpls.h"
#include "check.hpp"

namespace {
std::atomic<long> allocations = 0;
}

// Every form of operator new ends in one of these two. Not inlined: the compiler would see free() where it expects delete.
[[gnu::noinline]] void* operator new(std::size_t size) {
    ++allocations;
    if (void* memory = std::malloc(size)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
    ++allocations;
    const auto to = static_cast<std::size_t>(alignment);
    if (void* memory = std::aligned_alloc(to, (size + to - 1) / to * to)) return memory;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace {

struct Example {
    std::vector<std::size_t> sizes;
    bool bias;
    std::optional<double> input_scale;
    bpls::Activation activation;
    std::vector<std::vector<double>> weights;

    Example(std::vector<std::size_t> of, bool with_bias, std::optional<double> scale,
            bpls::Activation all)
        : sizes(std::move(of)), bias(with_bias), input_scale(scale), activation(all) {
        for (unsigned l = 0; l + 1 < sizes.size(); ++l)
            weights.push_back(random_values<double>((sizes[l] + bias) * sizes[l + 1], l + 3));
    }

    bpls::Network network() const {
        std::vector<bpls::Layer> layers;
        for (std::size_t l = 0; l < weights.size(); ++l)
            layers.push_back(
                {bpls::row_major(weights[l].data(), sizes[l] + bias, sizes[l + 1]), activation});
        return bpls::Network(layers, bias, input_scale);
    }

    // Layer by layer with linear().
    template <class In, class Out>
    std::vector<Out> expected(const std::vector<In>& rows, std::size_t count) const {
        bpls::ConstMatrix A = bpls::row_major(rows.data(), count, sizes.front());
        std::vector<std::vector<Out>> values;
        const double scale =
            input_scale.value_or(std::is_same_v<In, std::uint8_t> ? 1.0 / 255 : 1.0);
        for (std::size_t l = 0; l < weights.size(); ++l) {
            std::vector<Out> W(weights[l].size());
            for (std::size_t i = 0; i < W.size(); ++i)
                W[i] = static_cast<Out>(weights[l][i] *
                                        (l == 0 && i < sizes[0] * sizes[1] ? scale : 1.0));
            values.emplace_back(count * sizes[l + 1]);
            bpls::linear(A, bpls::row_major(W.data(), sizes[l] + bias, sizes[l + 1]),
                         {bias, activation, 1}, values.back().data());
            A = bpls::row_major(values.back().data(), count, sizes[l + 1]);
        }
        return values.back();
    }
};

// Some rows with zeros, as images have them.
template <class In>
std::vector<In> rows_of(std::size_t count, std::size_t inputs, bool zeros) {
    std::vector<In> rows = random_values<In>(count * inputs, 1);
    if (zeros)
        for (std::size_t i = 0; i < rows.size(); ++i)
            if (i % 5 != 0) rows[i] = In(0);
    return rows;
}

template <class In>
void equals_linear_to_the_bit(const Example& example) {
    using Out = typename bpls::Predictor<In>::Out;
    const std::size_t inputs = example.sizes.front(), outputs = example.sizes.back();
    bpls::Predictor<In> predictor(example.network());
    CHECK(predictor.inputs() == inputs && predictor.outputs() == outputs);
    for (const bool zeros : {false, true})
        for (const std::size_t count : {1, 2, 3, 4, 5, 6, 7, 8, 49, 130}) {
            const std::vector<In> rows = rows_of<In>(count, inputs, zeros);
            const std::vector<Out> expected = example.expected<In, Out>(rows, count);
            std::vector<Out> together(count * outputs), singly(count * outputs),
                threaded(count * outputs);
            CHECK(predictor.predict(rows.data(), count, inputs, together.data()));
            CHECK(together == expected);
            for (std::size_t i = 0; i < count; ++i)
                CHECK(predictor.predict(rows.data() + i * inputs, singly.data() + i * outputs));
            CHECK(singly == expected);
            const bpls::Predictor<In>& shared = predictor;
            CHECK(shared.predict(bpls::row_major(rows.data(), count, inputs), threaded.data(), 3));
            CHECK(threaded == expected);
            std::fill(threaded.begin(), threaded.end(), Out(0));
            CHECK(example.network().predict(bpls::row_major(rows.data(), count, inputs),
                                            threaded.data()));
            CHECK(threaded == expected);
        }
}

void all_types_equal_linear() {
    using bpls::Activation;
    const std::vector<Example> examples = {
        {{784, 60, 10}, true, {}, Activation::softmax},
        {{300, 100, 70, 3}, true, 0.5, Activation::tanh},
        {{1100, 33}, false, {}, Activation::relu},
        {{1, 1, 1}, true, {}, Activation::sigmoid},
    };
    for (const Example& example : examples) {
        equals_linear_to_the_bit<std::uint8_t>(example);
        equals_linear_to_the_bit<float>(example);
        equals_linear_to_the_bit<double>(example);
    }
    for (int i = 0; i < bpls::activation_count; ++i)
        equals_linear_to_the_bit<float>(Example({20, 17, 5}, true, {}, static_cast<Activation>(i)));
}

void other_layouts_give_the_same() {
    const Example example({70, 40, 3}, true, {}, bpls::Activation::elu);
    const bpls::Predictor<float> predictor(example.network());
    const std::size_t count = 53, stride = 75;
    const std::vector<float> wide = random_values<float>(count * stride, 8);
    std::vector<float> rows, columns(count * 70), found(count * 3);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < 70; ++j) {
            rows.push_back(wide[i * stride + j]);
            columns[j * count + i] = wide[i * stride + j];
        }
    const std::vector<float> expected = example.expected<float, float>(rows, count);
    bpls::Predictor<float>(predictor).predict(wide.data(), count, stride, found.data());
    CHECK(found == expected);
    predictor.predict(
        {reinterpret_cast<const unsigned char*>(columns.data()), bpls::DType::f32, count, 70,
         sizeof(float), static_cast<std::ptrdiff_t>(count * sizeof(float))},
        found.data());
    CHECK(found == expected);
}

// One row and many, any depth and activation, on a thread that has never called the library before.
template <class In>
void allocates_nothing(const Example& example) {
    const std::size_t inputs = example.sizes.front(), outputs = example.sizes.back(), count = 100;
    const bpls::Network network = example.network();
    const long none = allocations;
    bpls::Predictor<In> predictor(network);
    CHECK(allocations > none);  // those of the library are counted
    const std::vector<In> rows = rows_of<In>(count, inputs, true);
    std::vector<typename bpls::Predictor<In>::Out> out(count * outputs);
    long found = -1, undecided = 0;
    std::thread([&] {
        const long before = allocations;
        for (std::size_t i = 0; i < count; ++i) {
            predictor.predict(rows.data() + i * inputs, out.data() + i * outputs);
            undecided += predictor.decide(rows.data() + i * inputs) < 0;
        }
        for (const std::size_t batch : {2, 7, 48, 49, 100})
            predictor.predict(rows.data(), batch, inputs, out.data());
        found = allocations - before;
    }).join();
    CHECK(found == 0 && undecided == 0);
    static_assert(noexcept(predictor.predict(rows.data(), out.data())) &&
                  noexcept(predictor.predict(rows.data(), count, inputs, out.data())) &&
                  noexcept(predictor.decide(rows.data())));
}

void no_network_makes_prediction_allocate() {
    using bpls::Activation;
    std::vector<Example> examples = {{{784, 60, 10}, true, {}, Activation::softmax},
                                     {{300, 100, 70, 3}, false, 0.5, Activation::tanh}};
    for (int i = 0; i < bpls::activation_count; ++i)
        examples.push_back(Example({70, 40, 5}, true, {}, static_cast<Activation>(i)));
    for (const Example& example : examples) {
        allocates_nothing<std::uint8_t>(example);
        allocates_nothing<float>(example);
        allocates_nothing<double>(example);
    }
}

// The same in C, and where it has to tell that a row is not finite.
void c_functions_allocate_nothing() {
    const std::string header =
        R"({"__metadata__":{"format":"bpls_fast.network","version":"1","activations":"softplus",)"
        R"("input_scale":"","classes":""},)"
        R"("layers.0.weight":{"dtype":"F64","shape":[1,2],"data_offsets":[0,16]}})";
    std::vector<unsigned char> file(8 + header.size() + 16);
    file[0] = static_cast<unsigned char>(header.size());
    std::copy(header.begin(), header.end(), file.begin() + 8);
    bpls_network* network = nullptr;
    CHECK(header.size() < 256 && bpls_network_parse(file.data(), file.size(), &network) == BPLS_OK);
    bpls_predictor* predictor = nullptr;
    CHECK(bpls_predictor_new(network, BPLS_F64, &predictor) == BPLS_OK);
    const double rows[] = {1, NAN};
    double out[4];
    const long before = allocations;
    CHECK(bpls_predict_f64(predictor, rows, 1, out) == BPLS_OK);
    CHECK(bpls_predict_f64(predictor, rows, 2, out) == BPLS_NOT_FINITE);
    CHECK(bpls_predict_f32(predictor, nullptr, 2, nullptr) == BPLS_INVALID_ARGUMENT);
    CHECK(allocations == before);
    bpls_predictor_free(predictor);
    bpls_network_free(network);
}

void the_largest_output_is_decided_for() {
    const Example example({30, 20, 10}, true, {}, bpls::Activation::softmax);
    bpls::Predictor<double> predictor(example.network());
    const std::vector<double> rows = rows_of<double>(40, 30, false);
    const std::vector<double> out = example.expected<double, double>(rows, 40);
    for (std::size_t i = 0; i < 40; ++i) {
        const auto first = out.begin() + static_cast<std::ptrdiff_t>(i) * 10;
        CHECK(predictor.decide(rows.data() + i * 30) ==
              std::max_element(first, first + 10) - first);
    }
}

void rows_that_are_not_finite_are_told() {
    const Example example({80, 40, 2}, true, {}, bpls::Activation::tanh);
    bpls::Predictor<float> predictor(example.network());
    for (const float wrong : {NAN, INFINITY, -INFINITY}) {
        std::vector<float> x(80, 0.0f), out(2);
        CHECK(predictor.predict(x.data(), out.data()));
        x[79] = wrong;
        CHECK(!predictor.predict(x.data(), out.data()));
        CHECK(predictor.decide(x.data()) == -1);
    }
}

// Every thread has a copy; they share the weights, which outlive the first predictor.
void copies_predict_at_once() {
    const Example example({784, 60, 10}, true, {}, bpls::Activation::softmax);
    auto first = std::make_unique<bpls::Predictor<float>>(example.network());
    const std::vector<float> rows = rows_of<float>(64, 784, true);
    const std::vector<float> expected = example.expected<float, float>(rows, 64);
    std::vector<bpls::Predictor<float>> copies(4, *first);
    first.reset();
    std::vector<std::vector<float>> found(4, std::vector<float>(640));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < 64; ++i)
                copies[t].predict(rows.data() + i * 784, found[t].data() + i * 10);
        });
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : found) CHECK(one == expected);
}

// Whole matrices go through one predictor from several threads, each with threads of its own.
void one_predictor_takes_matrices_from_all_threads() {
    const Example example({300, 60, 10}, true, {}, bpls::Activation::tanh);
    const bpls::Predictor<std::uint8_t> predictor(example.network());
    const std::size_t count = 100;
    const std::vector<std::uint8_t> rows = rows_of<std::uint8_t>(count, 300, true);
    const std::vector<float> expected = example.expected<std::uint8_t, float>(rows, count);
    std::vector<std::vector<float>> found(4, std::vector<float>(count * 10));
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            predictor.predict(bpls::row_major(rows.data(), count, 300), found[t].data(),
                              static_cast<int>(t % 2) + 1);
        });
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : found) CHECK(one == expected);
}

void the_last_error_is_that_of_the_thread() {
    CHECK(bpls_set_num_threads(-1) == BPLS_INVALID_ARGUMENT);
    const std::string ours = bpls_last_error();
    std::string before, after;
    std::thread([&] {
        before = bpls_last_error();
        bpls_forward(99, nullptr, 0, 0, nullptr);
        after = bpls_last_error();
    }).join();
    CHECK(before.empty() && !after.empty() && after != ours && ours == bpls_last_error());
}

// It is destroyed after main(), when the scratch memory of the thread is gone already.
std::optional<bpls::Predictor<float>> kept_to_the_end;

void a_predictor_may_outlive_main() {
    const Example example({784, 60, 10}, true, {}, bpls::Activation::softmax);
    kept_to_the_end.emplace(example.network());
    for (std::size_t inputs = 1; inputs < 2000; inputs *= 2)  // leaves blocks of many sizes behind
        bpls::Predictor<double>(Example({inputs, 5}, true, {}, bpls::Activation::tanh).network());
}

void what_does_not_fit_is_refused() {
    const Example example({4, 3, 2}, true, {}, bpls::Activation::tanh);
    const bpls::Predictor<float> predictor(example.network());
    const std::vector<double> rows(20);
    std::vector<float> out(20);
    CHECK(throws<std::invalid_argument>(
        [&] { predictor.predict(bpls::row_major(rows.data(), 2, 4), out.data()); }));
    CHECK(throws<std::invalid_argument>(
        [&] { predictor.predict(bpls::row_major(out.data(), 2, 5), out.data()); }));
    const bpls::Network network_of_four = example.network();
    CHECK(throws<std::invalid_argument>(
        [&] { network_of_four.predict(bpls::row_major(rows.data(), 2, 4), out.data()); }));
    CHECK(throws<std::invalid_argument>(
        [&] { network_of_four.predict(bpls::row_major(out.data(), 2, 5), out.data()); }));
    const double large = 1e300;
    const bpls::Layer layer{bpls::row_major(&large, 1, 1), bpls::Activation::identity};
    const bpls::Network network({&layer, 1}, false);
    CHECK(throws<std::invalid_argument>([&] { bpls::Predictor<float> too_small(network); }));
    bpls::Predictor<double> wide_enough(network);
    const double one = 1;
    double found = 0;
    CHECK(wide_enough.predict(&one, &found) && found == large);
}

// The network of an example, with limits that some of its rows are outside of.
bpls::Network limited(const Example& example, bpls::InputLimits limits) {
    std::vector<bpls::Layer> layers;
    for (std::size_t l = 0; l < example.weights.size(); ++l)
        layers.push_back({bpls::row_major(example.weights[l].data(),
                                          example.sizes[l] + example.bias, example.sizes[l + 1]),
                          example.activation});
    return bpls::Network(layers, example.bias, example.input_scale, {}, std::move(limits));
}

template <class In>
void limits_are_applied() {
    using Out = typename bpls::Predictor<In>::Out;
    const Example example({7, 5, 3}, true, 0.5, bpls::Activation::tanh);
    const bpls::InputLimits limits{std::vector<double>(7, 0.25), std::vector<double>(7, 1.5)};
    bpls::Predictor<In> predictor(limited(example, limits));
    for (const std::size_t count : {1, 3, 49, 130}) {
        const std::vector<In> rows = rows_of<In>(count, 7, false);
        std::vector<Out> inside(rows.begin(), rows.end());
        for (Out& x : inside) x = std::clamp(x, Out(0.25), Out(1.5));
        const std::vector<Out> expected = example.expected<Out, Out>(inside, count);
        std::vector<Out> together(count * 3), threaded(count * 3);
        const long before = allocations;
        CHECK(predictor.predict(rows.data(), count, 7, together.data()));
        CHECK(allocations == before);
        CHECK(together == expected);
        const bpls::Predictor<In>& shared = predictor;
        CHECK(shared.predict(bpls::row_major(rows.data(), count, 7), threaded.data(), 3));
        CHECK(threaded == expected);
        std::vector<Out> clipped(count * 7);
        const std::vector<Out> lower(7, Out(0.25)), upper(7, Out(1.5));
        CHECK(bpls::clip_rows(bpls::row_major(rows.data(), count, 7), lower.data(), upper.data(), 2,
                              clipped.data()));
        CHECK(clipped == inside);
    }
    if constexpr (std::is_floating_point_v<In>)
        for (const In wrong :
             {std::numeric_limits<In>::quiet_NaN(), std::numeric_limits<In>::infinity()}) {
            std::vector<In> row(7, In(1));
            row[3] = wrong;
            Out out[3];
            CHECK(!predictor.predict(row.data(), out));
            CHECK(predictor.decide(row.data()) == -1);
        }
}

void limits_are_applied_to_all_types() {
    limits_are_applied<std::uint8_t>();
    limits_are_applied<float>();
    limits_are_applied<double>();
    const double value = 1;
    const float limit = 0;
    float narrow = 0;
    CHECK(throws<std::invalid_argument>(
        [&] { bpls::clip_rows(bpls::row_major(&value, 1, 1), &limit, &limit, 1, &narrow); }));
}

}  // namespace

int main() {
    return run_tests([] {
        all_types_equal_linear();
        other_layouts_give_the_same();
        no_network_makes_prediction_allocate();
        c_functions_allocate_nothing();
        the_largest_output_is_decided_for();
        rows_that_are_not_finite_are_told();
        copies_predict_at_once();
        one_predictor_takes_matrices_from_all_threads();
        the_last_error_is_that_of_the_thread();
        a_predictor_may_outlive_main();
        what_does_not_fit_is_refused();
        limits_are_applied_to_all_types();
    });
}
