// A spout and bolts on Storm's own adapter for JavaScript, whose file storm.js lies beside them.

const storm = require('./storm');

class Sentences extends storm.Spout {
    initialize(conf, context, done) {
        this.waiting = conf['own.sentences'].slice();
        done();
    }

    nextTuple(done) {
        if (!this.waiting.length) {
            done();
            return;
        }
        const sentence = this.waiting.shift();
        this.emit({tuple: [sentence], id: sentence}, (ids) => {
            this.logInfo(sentence + ' goes to ' + ids.length);
            done();
        });
    }

    ack(id, done) {
        this.logInfo('acked ' + id);
        done();
    }

    fail(id, done) {
        this.logWarn('failed ' + id);
        this.waiting.push(id);
        done();
    }
}

class Split extends storm.BasicBolt {
    process(tup, done) {
        const sentence = tup.values[0];
        if (sentence.includes('x') && !this.failed) {
            this.failed = true;
            done(new Error('a cross'));
            return;
        }
        const words = sentence.split(' ');
        let left = words.length;
        words.forEach((word) => {
            this.emit({tuple: [word, word.length], anchorTupleId: tup.id}, (ids) => {
                this.emit({tuple: [word, ids[0]], stream: 'sent', anchorTupleId: tup.id}, () => {
                    left -= 1;
                    if (left === 0) {
                        done();
                    }
                });
            });
        });
    }
}

class Count extends storm.BasicBolt {
    initialize(conf, context, done) {
        this.counts = {};
        this.task = context['taskid'];
        done();
    }

    process(tup, done) {
        const word = tup.values[0];
        this.counts[word] = (this.counts[word] || 0) + 1;
        this.emit({tuple: [word, this.counts[word], this.task, tup.component], anchorTupleId: tup.id}, () => done());
    }
}

new ({Sentences, Split, Count}[process.argv[2]])().run();
