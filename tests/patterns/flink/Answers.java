import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.api.common.state.KeyedStateStore;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.typeutils.base.IntSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.cep.nfa.NFA;
import org.apache.flink.cep.nfa.NFAState;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToFirstStrategy;
import org.apache.flink.cep.nfa.aftermatch.SkipToLastStrategy;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBuffer;
import org.apache.flink.cep.nfa.sharedbuffer.SharedBufferAccessor;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Reads cases (a JSON object a line), runs each on Flink's own automaton, and prints the case with its answers.
 *
 * <p>Loops over groups that may be empty never end in Flink: such a case is stopped and marked.
 */
public class Answers {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long PATIENCE = 5_000;
    private static JsonNode events;

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            ObjectNode given = (ObjectNode) JSON.readTree(line);
            Thread work = new Thread(() -> answer(given));
            work.start();
            work.join(PATIENCE);
            if (work.isAlive()) {
                given.put("endless", true);
                work.stop();
                work.join();
            }
            out.println(JSON.writeValueAsString(given));
        }
        out.flush();
        System.exit(0);
    }

    private static void answer(ObjectNode given) {
        events = given.get("events");
        AfterMatchSkipStrategy skip = strategy(given.get("skip"));
        NFA<Integer> nfa;
        try {
            nfa = compiled(given, skip);
        } catch (Exception error) {
            given.put("refused", error.getClass().getSimpleName());
            return;
        }
        try {
            run(given, nfa, skip);
        } catch (Exception error) {
            given.put("failed", error.getClass().getSimpleName());
        }
    }

    private static NFA<Integer> compiled(ObjectNode given, AfterMatchSkipStrategy skip) {
        Pattern<Integer, ?> pattern = sequence(given.get("parts"), skip);
        if (given.hasNonNull("within")) {
            pattern = pattern.within(Duration.ofMillis(given.get("within").asLong()));
        }
        return NFACompiler.compileFactory(pattern, true).createNFA();
    }

    private static void run(ObjectNode given, NFA<Integer> nfa, AfterMatchSkipStrategy skip) throws Exception {
        ArrayNode matches = JSON.createArrayNode();
        ArrayNode expired = JSON.createArrayNode();
        NFAState state = nfa.createInitialNFAState();
        SharedBuffer<Integer> buffer = new SharedBuffer<>(store(), IntSerializer.INSTANCE);
        long time = Long.MIN_VALUE;
        for (int at = 0; at < events.size(); at++) {
            long stamp = events.get(at).get(2).asLong();
            if (stamp != time) {
                advance(nfa, buffer, state, stamp, skip, matches, expired);
            }
            time = stamp;
            try (SharedBufferAccessor<Integer> accessor = buffer.getAccessor()) {
                add(matches, nfa.process(accessor, state, at, stamp, skip, () -> 0L));
            }
        }
        advance(nfa, buffer, state, Long.MAX_VALUE, skip, matches, expired);
        buffer.releaseCacheStatisticsTimer();
        given.set("matches", matches);
        given.set("timed_out", expired);
    }

    private static void advance(
            NFA<Integer> nfa,
            SharedBuffer<Integer> buffer,
            NFAState state,
            long time,
            AfterMatchSkipStrategy skip,
            ArrayNode matches,
            ArrayNode expired)
            throws Exception {
        try (SharedBufferAccessor<Integer> accessor = buffer.getAccessor()) {
            Tuple2<Collection<Map<String, List<Integer>>>, Collection<Tuple2<Map<String, List<Integer>>, Long>>> answer =
                    nfa.advanceTime(accessor, state, time, skip);
            add(matches, answer.f0);
            for (Tuple2<Map<String, List<Integer>>, Long> one : answer.f1) {
                expired.add(written(one.f0) + "@" + one.f1);
            }
        }
    }

    private static void add(ArrayNode matches, Collection<Map<String, List<Integer>>> found) {
        for (Map<String, List<Integer>> one : found) {
            matches.add(written(one));
        }
    }

    private static String written(Map<String, List<Integer>> match) {
        StringBuilder text = new StringBuilder();
        for (Map.Entry<String, List<Integer>> entry : new TreeMap<>(match).entrySet()) {
            text.append(text.length() == 0 ? "" : " ").append(entry.getKey()).append("=");
            text.append(entry.getValue().toString().replaceAll("[\\[\\] ]", ""));
        }
        return text.toString();
    }

    private static AfterMatchSkipStrategy strategy(JsonNode skip) {
        switch (skip.get(0).asText()) {
            case "to_next":
                return AfterMatchSkipStrategy.skipToNext();
            case "past_last":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "to_first":
                SkipToFirstStrategy first = AfterMatchSkipStrategy.skipToFirst(skip.get(1).asText());
                return skip.size() > 2 ? first.throwExceptionOnMiss() : first;
            case "to_last":
                SkipToLastStrategy last = AfterMatchSkipStrategy.skipToLast(skip.get(1).asText());
                return skip.size() > 2 ? last.throwExceptionOnMiss() : last;
            default:
                return AfterMatchSkipStrategy.noSkip();
        }
    }

    private static Pattern<Integer, ?> sequence(JsonNode parts, AfterMatchSkipStrategy skip) {
        Pattern<Integer, Integer> pattern = null;
        for (JsonNode part : parts) {
            pattern = quantified(linked(pattern, part, skip), part);
        }
        return pattern;
    }

    @SuppressWarnings("unchecked")
    private static Pattern<Integer, Integer> linked(
            Pattern<Integer, Integer> before, JsonNode part, AfterMatchSkipStrategy skip) {
        String link = part.get("link").asText();
        if (part.has("group")) {
            Pattern<Integer, Integer> group = (Pattern<Integer, Integer>) sequence(part.get("group"), skip);
            switch (link) {
                case "begin":
                    return Pattern.begin(group, skip);
                case "next":
                    return before.next(group);
                case "followed_by":
                    return before.followedBy(group);
                default:
                    return before.followedByAny(group);
            }
        }
        return named(before, link, part.get("name").asText(), skip).where(condition(part.get("where"), part.get("rule")));
    }

    private static Pattern<Integer, Integer> named(
            Pattern<Integer, Integer> before, String link, String name, AfterMatchSkipStrategy skip) {
        switch (link) {
            case "begin":
                return Pattern.<Integer>begin(name, skip);
            case "next":
                return before.next(name);
            case "followed_by":
                return before.followedBy(name);
            case "followed_by_any":
                return before.followedByAny(name);
            case "not_next":
                return before.notNext(name);
            default:
                return before.notFollowedBy(name);
        }
    }

    private static Pattern<Integer, Integer> quantified(Pattern<Integer, Integer> pattern, JsonNode part) {
        if (part.hasNonNull("times")) {
            int least = part.get("times").get(0).asInt();
            JsonNode most = part.get("times").get(1);
            if (most.isNull()) {
                pattern = least == 1 ? pattern.oneOrMore() : pattern.timesOrMore(least);
            } else {
                pattern = least == most.asInt() ? pattern.times(least) : pattern.times(least, most.asInt());
            }
        }
        if (part.hasNonNull("until")) {
            pattern = pattern.until(condition(part.get("until"), null));
        }
        if (part.hasNonNull("inner")) {
            pattern = part.get("inner").asText().equals("strict") ? pattern.consecutive() : pattern.allowCombinations();
        }
        if (part.path("greedy").asBoolean()) {
            pattern = pattern.greedy();
        }
        if (part.path("optional").asBoolean()) {
            pattern = pattern.optional();
        }
        if (part.hasNonNull("within")) {
            pattern = pattern.within(Duration.ofMillis(part.get("within").asLong()), WithinType.PREVIOUS_AND_CURRENT);
        }
        return pattern;
    }

    private static IterativeCondition<Integer> condition(JsonNode letters, JsonNode rule) {
        return new IterativeCondition<Integer>() {
            @Override
            public boolean filter(Integer at, Context<Integer> context) throws Exception {
                boolean fits = letters.asText().contains(events.get(at).get(0).asText());
                return fits && (rule == null || rule.isNull() || holds(rule, at, context));
            }
        };
    }

    private static boolean holds(JsonNode rule, int at, IterativeCondition.Context<Integer> context) throws Exception {
        List<Integer> taken = new ArrayList<>();
        for (Integer one : context.getEventsForPattern(rule.get(1).asText())) {
            taken.add(value(one));
        }
        switch (rule.get(0).asText()) {
            case "above_last":
                return taken.isEmpty() || value(at) > taken.get(taken.size() - 1);
            case "above_first":
                return taken.isEmpty() || value(at) > taken.get(0);
            case "sum_below":
                return taken.stream().mapToInt(Integer::intValue).sum() + value(at) < rule.get(2).asInt();
            default:
                return taken.size() < rule.get(2).asInt();
        }
    }

    private static int value(int at) {
        return events.get(at).get(1).asInt();
    }

    /** A state store that keeps maps in memory, which is all that the shared buffer asks for. */
    private static KeyedStateStore store() {
        return (KeyedStateStore) Proxy.newProxyInstance(
                Answers.class.getClassLoader(),
                new Class<?>[] {KeyedStateStore.class},
                (proxy, method, args) -> new InMemory<Object, Object>());
    }

    private static final class InMemory<K, V> implements MapState<K, V> {
        private final Map<K, V> held = new HashMap<>();

        @Override
        public V get(K key) {
            return held.get(key);
        }

        @Override
        public void put(K key, V value) {
            held.put(key, value);
        }

        @Override
        public void putAll(Map<K, V> map) {
            held.putAll(map);
        }

        @Override
        public void remove(K key) {
            held.remove(key);
        }

        @Override
        public boolean contains(K key) {
            return held.containsKey(key);
        }

        @Override
        public Iterable<Map.Entry<K, V>> entries() {
            return held.entrySet();
        }

        @Override
        public Iterable<K> keys() {
            return held.keySet();
        }

        @Override
        public Iterable<V> values() {
            return held.values();
        }

        @Override
        public Iterator<Map.Entry<K, V>> iterator() {
            return held.entrySet().iterator();
        }

        @Override
        public boolean isEmpty() {
            return held.isEmpty();
        }

        @Override
        public void clear() {
            held.clear();
        }
    }
}
